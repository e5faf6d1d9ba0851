"""`dibs stats`: how much of everything there is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import as_json, command, option, pass_target
from dibs.cli.kinds import SPAN
from dibs.cli.problems import problem
from dibs.cli.tables import Column, state, table
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs.store.queues import Counts


@command("stats", examples=("dibs stats", "dibs stats --since 1d --json", "dibs stats --watch --jsonl"))
@option("--since", key="option.since", type=SPAN, default="1h", show_default=True)
@option("--watch", key="option.watch", is_flag=True)
@option("--every", key="option.every", type=SPAN, default="2s", show_default=True)
@option("--jsonl", "as_lines", key="option.jsonl", is_flag=True)
@as_json
@pass_target
def stats(target: Target, since: str, watch: bool, every: str, as_lines: bool, as_json: bool) -> None:
    """Counted when asked."""
    from dibs.errors import InvalidOption
    from dibs.model.duration import seconds

    if watch and as_json:
        raise problem(InvalidOption, "json-stream")
    door = target.door()
    while True:
        counts = door.stats(since)
        if as_json or as_lines:
            output.document(plain(counts, seconds(since)), lines=as_lines)
        else:
            _show(counts, since)
        if not watch:
            return
        time.sleep(max(0.1, seconds(every)))


def plain(counts: Counts, span: float) -> dict[str, Any]:
    """Counts as plain values."""
    return {
        "live": [lane._asdict() for lane in counts.live],
        "finished": [{"queue": queue, "status": status, "jobs": jobs} for queue, status, jobs in counts.finished],
        "dead": [{"queue": queue, "jobs": jobs} for queue, jobs in counts.dead],
        "span": span,
        "capped": counts.capped,
    }


def _show(counts: Counts, since: str) -> None:
    now: list[tuple[object, ...]] = [
        (lane.queue, lane.priority, state(lane.status), lane.jobs, output.span(lane.oldest) if lane.oldest else "-")
        for lane in counts.live
    ]
    now += [(queue, "-", state("dead"), jobs, "-") for queue, jobs in counts.dead]
    columns = [
        Column(say("title.queue")),
        Column(say("title.priority"), 10, right=True),
        Column(say("title.status")),
        Column(say("title.jobs"), right=True),
        Column(say("title.oldest"), 20, right=True),
    ]
    if now:
        output.line(say("stats.now"))
        table(columns, now)
    if counts.finished:
        output.line(("\n" if now else "") + say("stats.finished", span=since))
        kept = [columns[place] for place in (0, 2, 3)]
        table(kept, [(queue, state(status), jobs) for queue, status, jobs in counts.finished])
    if counts.capped:
        output.note(say("stats.capped"))
    if not now and not counts.finished:
        output.note(say("stats.none"))
