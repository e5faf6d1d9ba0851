"""`dibs bench`: what this database gives on this machine, in a few seconds, and nothing is left behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs.cli import output
from dibs.cli.grammar import as_json, command, option, pass_target
from dibs.cli.kinds import Whole
from dibs.cli.problems import problem
from dibs.cli.tables import pairs
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs

QUEUE = "dibs.bench"
TASK = "dibs.bench.nothing"
_SINGLES = 200
_BATCH = 5_000


async def nothing() -> None:
    """What the measured jobs do."""


@command("bench", examples=("dibs bench", "dibs bench --jobs 50000 --json"))
@option("--jobs", "count", key="option.bench_jobs", type=Whole(100, 1_000_000), default=5_000, show_default=True)
@as_json
@pass_target
def bench(target: Target, count: int, as_json: bool) -> None:
    """In a queue of its own."""
    from dibs.errors import Conflict

    door = target.door(create=True)
    if door.count(queue=QUEUE, status=("claimed", "running")):
        raise problem(Conflict, "bench-runs", queue=QUEUE)
    door.register({TASK: nothing}, queue=QUEUE)
    _clean(door)
    try:
        rates = _measure(door, count)
    finally:
        _clean(door)
    if as_json:
        output.document({"url": door.url, "jobs": count, "per_second": rates})
        return
    pairs({say("title.database"): door.url, say("title.jobs"): f"{count:,}"})
    labels = {"enqueue": say("bench.single"), "enqueue_many": say("bench.bulk"), "run": say("bench.drain")}
    pairs({labels[name]: say("bench.rate", rate=f"{rate:,.0f}") for name, rate in rates.items()})


def _measure(door: Dibs, count: int) -> dict[str, float]:
    job = door.job(TASK)
    with output.progress(say("bench.progress"), 3) as bar:
        singles = _rate(_SINGLES, lambda: [door.enqueue(TASK) for _ in range(_SINGLES)])
        output.step(bar, 1)
        bulk = _rate(count, lambda: [door.enqueue_many([job] * min(_BATCH, left)) for left in range(count, 0, -_BATCH)])
        output.step(bar, 1)
        worker = door.worker([QUEUE], concurrency=100)
        drained = _rate(count + _SINGLES, lambda: worker.run(until_empty=True))
        output.step(bar, 1)
    return {"enqueue": singles, "enqueue_many": bulk, "run": drained}


def _rate(count: int, work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return round(count / (time.perf_counter() - started), 1)


def _clean(door: Dibs) -> None:
    """What an earlier measurement left when it was killed, and what this one has made."""
    door.discard(queue=QUEUE)
    door.prune(QUEUE, older_than=0)
