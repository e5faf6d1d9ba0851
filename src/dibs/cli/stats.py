"""`dibs stats`: how much of everything there is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import as_json, command, option, pass_target
from dibs.cli.kinds import SPAN
from dibs.cli.problems import problem
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
        "span": span,
        "capped": counts.capped,
    }


def _show(counts: Counts, since: str) -> None:
    titles = [say(key) for key in ("title.queue", "title.priority", "title.status", "title.jobs", "title.oldest")]
    live = [
        (lane.queue, lane.priority, lane.status, lane.jobs, output.span(lane.oldest) if lane.oldest else "-")
        for lane in counts.live
    ]
    finished = [(queue, "-", status, jobs, say("stats.within", span=since)) for queue, status, jobs in counts.finished]
    output.table(titles, [*live, *finished], right=[1, 3])
    if counts.capped:
        output.note(say("stats.capped"))
    if not live and not finished:
        output.note(say("stats.none"))
