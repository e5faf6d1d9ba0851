"""`dibs demo`: watch jobs flow, fail, lose their worker and come back, on an embedded database, in under a minute."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dibs.cli import output
from dibs.cli.grammar import command, option, pass_target
from dibs.cli.tables import Column, Word, grid, state
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dibs.cli.demo_story import Story

_LINES = 12
_FRAME = 0.1
_LIVE = ("ready", "running", "scheduled", "retrying")


@command("demo", examples=("dibs demo", "dibs demo --plain"), app=False)
@option("--plain", key="option.plain", is_flag=True)
@pass_target
def demo(target: Target, plain: bool) -> None:
    """Run the demo in a folder of its own that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="dibs-demo-", ignore_cleanup_errors=True) as folder:
        where = target.url or f"sqlite:///{Path(folder, 'demo.db')}"
        os.environ["DIBS_DEMO_URL"] = where
        _play(where, plain or not sys.stdout.isatty())


def _play(url: str, plain: bool) -> None:
    from dibs.cli.demo_story import Story
    from dibs.cli.demo_tasks import jobs

    lines: deque[str] = deque(maxlen=_LINES)
    told = output.line if plain else lines.append
    story = Story(jobs, url, lambda text: told(f"{story.elapsed:5.1f} s  {text}"))
    output.line(say("demo.intro"))
    try:
        if plain:
            for _ in story.scenes():
                time.sleep(_FRAME)
        else:
            _show(story, lines)
    finally:
        story.close()
    for line in _summary(story):
        output.line(line)
    jobs.close()


def _show(story: Story, lines: deque[str]) -> None:
    from rich.live import Live

    with Live(console=output.console(sys.stdout), auto_refresh=False) as live:
        for _ in story.scenes():
            live.update(_frame(story, lines), refresh=True)
            time.sleep(_FRAME)
        live.update(_frame(story, lines), refresh=True)


def _frame(story: Story, lines: deque[str]) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel

    title = f"dibs demo · {story.elapsed:4.1f} s"
    columns = [Column(say("title.queue")), *(Column(state(name), right=True) for name in (*_LIVE, "completed"))]
    return Group(Panel(grid(columns, _rows(story)), title=title, border_style="blue"), "\n".join(lines))


def _rows(story: Story) -> list[list[Word]]:
    """How many jobs of each queue are in which state. What is claimed is as good as running."""
    counts = story.jobs.stats()
    numbers: dict[tuple[str, str], int] = {}
    for lane in counts.live:
        key = lane.queue, "running" if lane.status == "claimed" else lane.status
        numbers[key] = numbers.get(key, 0) + lane.jobs
    numbers |= {(queue, status): jobs for queue, status, jobs in counts.finished}
    return [
        [Word(queue), *(_number(numbers.get((queue, name), 0), name) for name in (*_LIVE, "completed"))]
        for queue in sorted({queue for queue, _ in numbers})
    ]


def _number(count: int, name: str) -> Word:
    word = Word(f"{count:,}" if count else "·")
    word.colour = state(name).colour if count else "dim"
    return word


def _summary(story: Story) -> Iterator[str]:
    """What happened, and what to try next."""
    kept, seconds = sum(story.finished().values()), round(story.elapsed)
    whole = kept == story.enqueued
    yield say("demo.nothing_lost" if whole else "demo.lost", enqueued=story.enqueued, finished=kept, seconds=seconds)
    for hero in story.heroes:
        record = story.jobs.get(hero.handle.id)
        for error in record.errors:
            yield "  " + say("demo.attempt_failed", name=hero.name, attempt=error.attempt, error=error.message)
        yield "  " + say("demo.ended", name=hero.name, status=state(record.status), attempt=record.attempts)
    yield "  " + say("demo.rate", rate=f"{story.burst_rate:,.0f}")
    yield say("demo.next")
