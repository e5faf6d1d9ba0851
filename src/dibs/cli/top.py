"""`dibs top`: a live view of queues and workers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dibs.cli import output
from dibs.cli.grammar import command, option, pass_target
from dibs.cli.kinds import SPAN
from dibs.cli.problems import problem
from dibs.cli.target import Target
from dibs.errors import DatabaseUnreachable, DibsError
from dibs.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dibs import Dibs

_RECENT = 10


@command("top", examples=("dibs top", "dibs top --every 500ms"))
@option("--every", key="option.every", type=SPAN, default="1s", show_default=True)
@pass_target
def top(target: Target, every: str) -> None:
    """q quits, space holds."""
    from rich.live import Live

    from dibs.cli.keyboard import keys, pressed
    from dibs.model.duration import seconds

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise problem(DibsError, "terminal-needed")
    door, pause, held = target.door(), max(0.1, seconds(every)), False
    with keys(), Live(view(door), console=output.console(sys.stdout), screen=True, auto_refresh=False) as live:
        while True:
            key = pressed(pause)
            if key in ("q", "Q", "\x1b"):
                return
            held = held != (key == " ")
            if not held:
                live.update(view(door), refresh=True)


def view(door: Dibs) -> RenderableType:
    """Everything on one page. A database that is away is said, and asked again the next time."""
    from rich.console import Group
    from rich.text import Text

    try:
        return Group(_head(door), _queues(door), _workers(door), Text(say("top.keys"), style="dim"))
    except DatabaseUnreachable as error:
        return Text(f"{say('error.word')} {output.safe(error.cause)}", style="red")


def _head(door: Dibs) -> RenderableType:
    from rich.text import Text

    counts = door.stats(_RECENT)
    finished = sum(jobs for _, _, jobs in counts.finished)
    ready = sum(lane.jobs for lane in counts.live if lane.status == "ready")
    running = sum(lane.jobs for lane in counts.live if lane.status in ("claimed", "running"))
    rate = f"{finished / _RECENT:,.1f}"
    return Text(say("top.head", url=door.url, rate=rate, ready=f"{ready:,}", running=running), style="bold")


def _queues(door: Dibs) -> RenderableType:
    from dibs.cli.queue import ENDED, LIVE, describe

    titles = [say("title.queue"), *map(str.upper, LIVE), *map(str.upper, ENDED[:2]), say("title.oldest")]
    rows = [
        (
            queue["name"],
            *(queue["jobs"][status] or "-" for status in LIVE),
            *(queue["finished"][status] or "-" for status in ENDED[:2]),
            output.span(queue["oldest"]) if queue["oldest"] else "-",
        )
        for queue in describe(door)
    ]
    return output.grid(titles, rows, right=range(1, 10))


def _workers(door: Dibs) -> RenderableType:
    from dibs.cli.worker_list import row, titles

    return output.grid(titles(), [row(worker) for worker in door.workers()])
