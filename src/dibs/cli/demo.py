"""`dibs demo`: watch jobs flow, fail, lose their worker and come back, on an embedded database, in under a minute."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dibs.messages import say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dibs.cli.demo_story import Story

_LINES = 12
_FRAME = 0.1
_COLUMNS = ("ready", "running", "scheduled", "retrying")


@click.command(help=say("demo.help"))
@click.option("--url", help=say("demo.url"))
@click.option("--plain", is_flag=True, help=say("demo.plain"))
def demo(url: str | None, plain: bool) -> None:
    """Run the demo in a folder of its own that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="dibs-demo-", ignore_cleanup_errors=True) as folder:
        where = url or f"sqlite:///{Path(folder, 'demo.db')}"
        os.environ["DIBS_DEMO_URL"] = where
        sys.exit(_play(where, plain or not sys.stdout.isatty()))


def _play(url: str, plain: bool) -> int:
    from rich.console import Console

    from dibs.cli.demo_story import Story
    from dibs.cli.demo_tasks import jobs

    console = Console()
    lines: deque[str] = deque(maxlen=_LINES)
    told = console.print if plain else lines.append
    story = Story(jobs, url, lambda text: told(f"{story.elapsed:5.1f} s  {text}"))
    console.print(say("demo.intro", url=jobs.url))
    try:
        if plain:
            for _ in story.scenes():
                time.sleep(_FRAME)
        else:
            _show(console, story, lines)
    finally:
        story.close()
    console.print(_summary(story))
    jobs.close()
    return 0


def _show(console: Console, story: Story, lines: deque[str]) -> None:
    from rich.live import Live

    with Live(console=console, auto_refresh=False) as live:
        for _ in story.scenes():
            live.update(_frame(story, lines), refresh=True)
            time.sleep(_FRAME)
        live.update(_frame(story, lines), refresh=True)


def _frame(story: Story, lines: deque[str]) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table

    stats = story.jobs.stats()
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(say("demo.queue"))
    for column in (*_COLUMNS, "done"):
        table.add_column(say(f"demo.{column}"), justify="right")
    live = {(row.queue, row.status): row.jobs for row in stats.live}
    done: dict[str, int] = {}
    for queue, _, number in stats.finished:
        done[queue] = done.get(queue, 0) + number
    for queue in sorted({row.queue for row in stats.live} | set(done)):
        held = live.get((queue, "running"), 0) + live.get((queue, "claimed"), 0)
        counts = [held if column == "running" else live.get((queue, column), 0) for column in _COLUMNS]
        table.add_row(queue, *(_number(count) for count in counts), f"[green]{done.get(queue, 0):,}")
    return Group(Panel(table, title=f"dibs · {story.elapsed:4.1f} s", border_style="blue"), "\n".join(lines))


def _number(count: int) -> str:
    return f"{count:,}" if count else "[dim]·"


def _summary(story: Story) -> str:
    """What happened, and what to try next."""
    finished = story.finished()
    kept = sum(finished.values())
    verdict = "demo.nothing_lost" if kept == story.enqueued else "demo.lost"
    text = [say(verdict, enqueued=f"{story.enqueued:,}", finished=f"{kept:,}", seconds=f"{story.elapsed:.0f}")]
    for hero in story.heroes:
        record = story.jobs.get(hero.handle.id)
        for error in record.errors:
            text.append(say("demo.attempt_failed", name=hero.name, attempt=error.attempt, error=error.message))
        text.append(say("demo.ended", name=hero.name, status=record.status, attempt=record.attempts))
    text.append(say("demo.rate", rate=f"{story.burst_rate:,.0f}"))
    text.append(say("demo.next"))
    return "\n".join(text)
