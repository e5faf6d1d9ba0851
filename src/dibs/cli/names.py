"""Queue and task names that a shell may complete, and that a typing mistake may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from dibs.cli.target import Target
from dibs.errors import DibsError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dibs import Dibs


def complete_queue(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the queues in the database."""
    return _items(typed, lambda: (state.name for state in _target(ctx).door().queues()))


def complete_task(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the tasks of the application."""
    return _items(typed, lambda: (task.name for task in _target(ctx).application().dibs.tasks))


def known_queue(door: Dibs, name: str) -> str:
    """The name, if there is such a queue; else `NotFound` with the nearest one."""
    from dibs.cli.problems import problem
    from dibs.errors import NotFound
    from dibs.model.names import check_name

    known = [state.name for state in door.queues()]
    if check_name("queue", name) not in known:
        near = difflib.get_close_matches(name, known, 3) or known[:10]
        raise problem(NotFound, "unknown-queue", queue=name, names=", ".join(near) or "-")
    return name


def _target(ctx: click.Context) -> Target:
    """While completing no option has been handled yet, so they are read from what Click has parsed."""
    return ctx.find_object(Target) or Target()


def _items(typed: str, names: Callable[[], Iterable[str]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        found = list(names())
    except DibsError:
        # Whatever is wrong is told when the command is run; a shell in the middle of a line cannot show it.
        return []
    return [CompletionItem(name) for name in sorted(found) if name.startswith(typed)]
