"""Names of queues and tasks, and ids of jobs: completed by a shell, found by their beginning, corrected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

import click

from dibs.cli.target import Target
from dibs.errors import DibsError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dibs import Dibs

LEAST_LETTERS = 4
"""How much of an id says anything at all."""


def complete_queue(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the queues in the database."""
    return _items(typed, lambda: (state.name for state in _target(ctx).door().queues()))


def complete_task(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the tasks of the application."""
    return _items(typed, lambda: (task.name for task in _target(ctx).application().dibs.tasks))


def known_queue(door: Dibs, name: str | None) -> str | None:
    """The name, if there is such a queue, or none is given; else `NotFound` with the nearest one."""
    from dibs.cli.problems import problem
    from dibs.errors import NotFound
    from dibs.model.names import check_name

    if name is None:
        return None
    known = [state.name for state in door.queues()]
    if check_name("queue", name) not in known:
        door.stats(0)  # finds what other programs have inserted by plain SQL
        known = [state.name for state in door.queues()]
    if name not in known:
        near = difflib.get_close_matches(name, known, 3) or known[:10]
        raise problem(NotFound, "unknown-queue", queue=name, names=", ".join(near) or "-")
    return name


def known_id(door: Dibs, given: str) -> str:
    """The id of a job: the whole of it, or so much of its beginning that only one job can be meant."""
    from dibs.cli.problems import problem
    from dibs.errors import InvalidOption, NotFound

    letters = given.lower().replace("-", "")
    if not re.fullmatch(f"[0-9a-f]{{{LEAST_LETTERS},32}}", letters):
        raise problem(InvalidOption, "bad-id", id=given)
    if len(letters) == 32:
        return str(UUID(letters))
    last = str(UUID(letters.ljust(32, "f")))
    found = [job_id for job_id in door.find(limit=3, cursor=last) if job_id.replace("-", "").startswith(letters)]
    if not found:
        raise problem(NotFound, "no-such-id", id=given)
    if len(found) > 1:
        raise problem(InvalidOption, "ambiguous-id", id=given, ids=", ".join(found[:2]))
    return found[0]


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
