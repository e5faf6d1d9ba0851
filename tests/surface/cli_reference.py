"""The reference of the command line, made from the commands themselves, for docs/cli.md."""

from __future__ import annotations

from collections.abc import Iterator

import click

from dibs.cli.grammar import Argument, Command, Group, Option
from dibs.cli.tree import root
from dibs.messages import say

COMMON = ("url", "app", "debug")


def commands() -> Iterator[str]:
    """Every command with its promise, its arguments and options, and examples."""
    yield from ("", "Every command takes these:", "", "| option | |", "|---|---|")
    yield from (_row(item, click.Context(root)) for item in root.params if item.name in COMMON)
    yield ""
    yield from _group(root, click.Context(root, info_name="dibs"))


def _group(group: Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None:
            inner = click.Context(found, info_name=name, parent=context)
            yield from _group(found, inner) if isinstance(found, Group) else _command(found, inner)


def _command(found: click.Command, context: click.Context) -> Iterator[str]:
    yield from (f"### {context.command_path}", "")
    text = say(f"help.{found.path}") if isinstance(found, Command) else found.help or ""
    yield from (text.replace("\n", " "), "")
    usage = " ".join(found.collect_usage_pieces(context))
    yield from ("```text", f"{context.command_path} {usage}", "```", "")
    params = [item for item in found.params if item.name not in COMMON]
    if params:
        yield from ("| | |", "|---|---|")
        yield from (_row(item, context) for item in params)
        yield ""
    if isinstance(found, Command) and found.examples:
        yield from ("```sh", *found.examples, "```", "")


def _row(item: click.Parameter, context: click.Context) -> str:
    if isinstance(item, Argument):
        return f"| `{_plain(item.make_metavar(context))}` | {say(item.key)} |"
    assert isinstance(item, click.Option)
    names, described = item.get_help_record(context) or ("", "")
    text = say(item.key) if isinstance(item, Option) else described
    default = f" Default: `{item.default}`." if item.show_default is True and item.default is not None else ""
    return f"| `{_plain(names)}` | {_plain(text)}{_shown(default)} |"


def _shown(default: str) -> str:
    return default.replace("('", "").replace("',)", "")


def _plain(text: str) -> str:
    return text.replace("|", "\\|")
