"""Commands, groups and options that speak the user's language and are loaded only when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from dibs.cli.target import Target
from dibs.messages import say

F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """An option whose help is a text of the catalogue."""

    def __init__(self, *args: Any, key: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.key = key


class Argument(click.Argument):
    """An argument whose help is a text of the catalogue."""

    def __init__(self, *args: Any, key: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.key = key


class Command(click.Command):
    """A command: its help is the text `help.<path>`, and ends with examples."""

    def __init__(self, name: str | None, *, path: str, examples: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.path = path
        self.examples = tuple(examples)

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002 Click passes it
        """The first sentence of the help, whole."""
        return say(f"help.{self.path}").partition("\n")[0]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, promise, arguments, options, commands, examples."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, pieces, prefix=say("frame.usage") + " ")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(say(f"help.{self.path}").replace("\n", "\n\n"))
        arguments = [param for param in self.params if isinstance(param, Argument)]
        _section(formatter, say("frame.arguments"), [(item.make_metavar(ctx), say(item.key)) for item in arguments])
        _section(formatter, say("frame.options"), [self._record(param, ctx) for param in self._options(ctx)])
        self.format_commands(ctx, formatter)
        if self.examples:
            with formatter.section(say("frame.examples")):
                formatter.write("".join(f"  {example}\n" for example in self.examples))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A plain command has none."""

    def _options(self, ctx: click.Context) -> list[click.Option]:
        return [item for item in self.get_params(ctx) if isinstance(item, click.Option) and not item.hidden]

    def _record(self, option: click.Option, ctx: click.Context) -> tuple[str, str]:
        names = (option.get_help_record(ctx) or ("", ""))[0]
        return names, say(option.key if isinstance(option, Option) else "option.help")


class Group(Command, click.Group):
    """A command with commands below it, each loaded when it is called: `table` says where each one lives."""

    def __init__(
        self, name: str | None, *, path: str, table: Mapping[str, str], later: Sequence[str] = (), **attributes: Any
    ) -> None:
        super().__init__(name, path=path, **attributes)
        self.table = table
        self.later = later

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 Click passes it
        """All names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 Click passes it
        """Load a command, or answer None."""
        place = self.table.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as missing:
            if missing.name != module:
                raise
            return None
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The names with what they do, without loading any."""
        prefix = f"{self.path}." if self.path != "dibs" else ""
        rows = [(name, say(f"help.{prefix}{name}").partition("\n")[0]) for name in self.table]
        _section(formatter, say("frame.commands"), rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the nearest names."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UnknownCommand(name, list(self.table), name in self.later, ctx)
        return super().resolve_command(ctx, args)


class UnknownCommand(click.UsageError):
    """No such command; `known` are those there are, `later` says that a later version has it."""

    def __init__(self, name: str, known: list[str], later: bool, ctx: click.Context) -> None:
        super().__init__(name, ctx)
        self.name = name
        self.known = known
        self.later = later


def _section(formatter: click.HelpFormatter, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def command(
    path: str, *, examples: Sequence[str] = (), app: bool = True, url: bool = True
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function, with the options that every command takes."""

    def make(function: Callable[..., Any]) -> Command:
        params: list[click.Parameter] = list(reversed(getattr(function, "__click_params__", [])))
        params += [item for item, wanted in ((_URL(), url), (_APP(), app), (_DEBUG(), True)) if wanted]
        return Command(path.rpartition(".")[2], path=path, examples=examples, callback=function, params=params)

    return make


def group(path: str, table: Mapping[str, str], later: Sequence[str] = ()) -> Group:
    """A group of lazily loaded commands; those of `later` versions are known by name."""
    params: list[click.Parameter] = [_URL(), _APP(), _DEBUG()]
    return Group(path.rpartition(".")[2], path=path, table=table, later=later, params=params)


def option(*names: str, key: str, **attributes: Any) -> Callable[[F], F]:
    """An option of a command; `key` is its help in the catalogue."""
    return click.option(*names, cls=Option, key=key, **attributes)


def argument(*names: str, key: str, **attributes: Any) -> Callable[[F], F]:
    """An argument of a command; `key` is its help in the catalogue."""
    return click.argument(*names, cls=Argument, key=key, **attributes)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep a common option where every command finds it; the one written last counts."""
    if value not in (None, False):
        setattr(ctx.ensure_object(Target), str(param.name), value)


def _URL() -> Option:
    return Option(["--url"], key="option.url", metavar="URL", expose_value=False, callback=_remember)


def _APP() -> Option:
    return Option(["--app"], key="option.app", metavar="MODULE:NAME", expose_value=False, callback=_remember)


def _DEBUG() -> Option:
    return Option(["--debug"], key="option.debug", is_flag=True, expose_value=False, callback=_remember)


as_json = option("--json", "as_json", key="option.json", is_flag=True)
confirmed = option("--yes", "-y", key="option.yes", is_flag=True)
rehearse = option("--dry-run", key="option.dry_run", is_flag=True)


def pass_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what the common options lead to, as its first argument."""
    return click.make_pass_decorator(Target, ensure=True)(function)
