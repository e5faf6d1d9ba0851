"""`dibs top`: a live view of queues and workers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.cli import output
from dibs.cli.grammar import as_json, command, option, pass_target
from dibs.cli.kinds import SPAN
from dibs.cli.problems import problem
from dibs.cli.tables import grid
from dibs.cli.target import Target
from dibs.errors import DatabaseUnreachable, DibsError
from dibs.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dibs import Dibs
    from dibs.store.roll import WorkerState

_RECENT = 10


@command("top", examples=("dibs top", "dibs top --every 500ms", "dibs top --json"))
@option("--every", key="option.every", type=SPAN, default="1s", show_default=True)
@as_json
@pass_target
def top(target: Target, every: str, as_json: bool) -> None:
    """q quits, space holds; as JSON it is one look."""
    from rich.live import Live

    from dibs.cli.keyboard import keys, pressed
    from dibs.model.duration import seconds

    if as_json:
        output.document(_plain(_found(target.door())))
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise problem(DibsError, "terminal-needed")
    door, pause, held = target.door(), max(0.1, seconds(every)), False
    seen = _look(door)
    with keys(), Live(_draw(seen, held), console=output.console(sys.stdout), screen=True, auto_refresh=False) as live:
        while True:
            key = pressed(pause)
            if key in ("q", "Q", "\x1b"):
                return
            held = held != (key == " ")
            if not held:
                seen = _look(door)
            live.update(_draw(seen, held), refresh=True)  # also while it is held: the window may have another size


class Seen(NamedTuple):
    """What one look at the database has found; `trouble` if there was none to be found."""

    url: str
    trouble: str = ""
    rate: float = 0.0
    queues: Sequence[dict[str, Any]] = ()
    workers: Sequence[WorkerState] = ()


def _look(door: Dibs) -> Seen:
    """Everything for one page. A database that is away is said, and asked again the next time."""
    try:
        return _found(door)
    except DatabaseUnreachable as error:
        return Seen(door.url, error.cause)


def _found(door: Dibs) -> Seen:
    from dibs.cli.queue import describe, shown

    finished = sum(jobs for _, _, jobs in door.stats(_RECENT).finished)
    return Seen(door.url, "", finished / _RECENT, shown(describe(door, door.stats())), door.workers())


def _plain(seen: Seen) -> dict[str, Any]:
    """One look as plain values; the rate is that of the last seconds."""
    from dibs.cli.worker_list import plain

    workers = [plain(worker) for worker in seen.workers]
    return {"url": seen.url, "rate": seen.rate, "queues": seen.queues, "workers": workers}


def _draw(seen: Seen, held: bool) -> RenderableType:
    """One page: what the keys do stands on top, where no window is too small for it."""
    from rich.console import Group
    from rich.text import Text

    from dibs.cli import queue, worker_list

    legend = Text(say("top.keys"), style="dim")
    if held:
        legend = Text(say("top.held"), style="bold yellow")
    if seen.trouble:
        return Group(legend, Text(f"{say('error.word')} {output.safe(seen.trouble)}", style="red"))
    return Group(
        Text(_head(seen), style="bold"),
        legend,
        grid(queue.columns(), [queue.row(item) for item in seen.queues]),
        Text(),
        grid(worker_list.columns(), [worker_list.row(worker) for worker in seen.workers]),
    )


def _head(seen: Seen) -> str:
    ready = sum(queue["jobs"]["ready"] for queue in seen.queues)
    running = sum(queue["jobs"]["claimed"] + queue["jobs"]["running"] for queue in seen.queues)
    dead = sum(queue["dead"] for queue in seen.queues)
    return say("top.head", url=seen.url, rate=f"{seen.rate:,.1f}", ready=ready, running=running, dead=dead)
