"""What does an old snapshot cost? Nothing that died under it can be removed from the indexes."""

from __future__ import annotations

from contextlib import nullcontext

from bench.app import application
from bench.core.pairing import Run, alternate, of, ratios
from bench.core.result import Result, figure
from bench.core.stage import Stage
from bench.draining import Drain, Drained, check_all_finished, fill_reference, ours, store, theirs

JOBS = {"postgres": (150_000, 60_000), "mysql": (100_000, 40_000)}
"""In all, and in a quick run: as many as the bar of each kind of database is about."""
TAIL = 15_000
FREE, PINNED = "dibs", "dibs, pinned"
RAW_FREE, RAW_PINNED = "reference", "reference, pinned"


def pinned(stage: Stage) -> Result:
    """The rate of the last 15,000 of very many jobs while a transaction holds an old snapshot, and without one."""
    jobs = stage.few(*JOBS[stage.ground.kind])
    cost: list[Drained] = []
    with stage.database("pinned") as database:
        app = application(database.url)

        def mine(who: str) -> Run:
            last = store(database, app, Drain(jobs))
            database.settle_down(database.job)
            with database.old_snapshot() if who == PINNED else nullcontext():
                done = ours(stage, database, Drain(jobs), last, who)
            check_all_finished(database, jobs)
            cost.append(done)
            return _tail(done, jobs)

        def raw(who: str) -> Run:
            database.clear()
            fill_reference(database, jobs)
            with database.old_snapshot() if who == RAW_PINNED else nullcontext():
                done = theirs(stage, database, Drain(jobs), who)
            cost.append(done)
            return _tail(done, jobs)

        takes = [lambda: mine(FREE), lambda: mine(PINNED), lambda: raw(RAW_FREE), lambda: raw(RAW_PINNED)]
        runs = alternate(takes, stage.few(3, 1), stage.say)
        app.jobs.close()
    figures = [
        figure("pinned by unpinned", ratios(runs, PINNED, FREE), "", stage.bar("pinned")),
        figure("the reference, pinned by unpinned", ratios(runs, RAW_PINNED, RAW_FREE)),
        *[figure(who, [run.rate for run in of(runs, who)], "jobs/s") for who in (FREE, PINNED, RAW_FREE, RAW_PINNED)],
    ]
    whole = [done.run for done in cost]
    for who in (FREE, PINNED, RAW_FREE, RAW_PINNED):
        figures.append(figure(f"{who}, server CPU, all", [run.server_us for run in of(whole, who)], "µs/job"))
    return Result("pinned", f"last {TAIL:,} of {jobs:,} under an old snapshot", figures, rounds=_told(runs, whole))


def _tail(done: Drained, jobs: int) -> Run:
    rate = done.rate_between(jobs - TAIL, jobs)
    return Run(done.run.who, TAIL, TAIL / rate)


def _told(tails: list[Run], whole: list[Run]) -> list[dict[str, object]]:
    return [{"tail": tail.as_json(), "all": run.as_json()} for tail, run in zip(tails, whole, strict=True)]
