"""How fast do workers empty a queue of jobs that do nothing?"""

from __future__ import annotations

from bench.app import application
from bench.core.pairing import Run, alternate, compared, of, ratios
from bench.core.result import Figure, Result, figure
from bench.core.stage import Stage
from bench.draining import Drain, check_all_finished, fill_reference, ours, store, theirs
from bench.grounds.database import Database


def drain_async_1(stage: Stage) -> Result:
    """One worker process, an `async def` handler."""
    jobs = stage.few(50_000, 20_000)
    with stage.database("drain_async_1") as database:
        runs = _runs(stage, database, Drain(jobs), tuned=True)
    figures = compared(runs, stage.bar("drain_async_1, ratio"), stage.bar("drain_async_1, client µs"))
    figures += _tuned(runs)
    return _result("drain_async_1", "drain, 1 worker process, `async def` handler", figures, runs)


def drain_async_2(stage: Stage) -> Result:
    """Two worker processes beside two of the reference."""
    jobs = stage.few(100_000, 30_000)
    with stage.database("drain_async_2") as database:
        runs = _runs(stage, database, Drain(jobs, processes=2))
    figures = compared(runs, stage.bar("drain_async_2, ratio"), stage.bar("drain_async_2, client µs"))
    return _result("drain_async_2", "drain, 2 worker processes beside 2 of the reference", figures, runs)


def drain_sync_1(stage: Stage) -> Result:
    """One worker process, a `def` handler: each job passes through a thread pool."""
    jobs = stage.few(50_000, 20_000)
    with stage.database("drain_sync_1") as database:
        runs = _runs(stage, database, Drain(jobs, task="sync_noop"))
    figures = compared(runs, stage.bar("drain_sync_1, ratio"))
    return _result("drain_sync_1", "drain, 1 worker process, `def` handler", figures, runs)


def _runs(stage: Stage, database: Database, drain: Drain, tuned: bool = False) -> list[Run]:
    app = application(database.url)

    def raw(tuned: bool) -> Run:
        database.clear()
        fill_reference(database, drain.jobs, tuned)
        return theirs(stage, database, drain, "tuned reference" if tuned else "reference").run

    def mine() -> Run:
        database.forget(database.reference.table)
        last = store(database, app, drain)
        database.settle_down(database.job)
        done = ours(stage, database, drain, last).run
        check_all_finished(database, drain.jobs)
        return done

    tuned = tuned and database.reference.tunable
    takes = [lambda: raw(tuned=False), mine, *([lambda: raw(tuned=True)] if tuned else [])]
    try:
        return alternate(takes, stage.few(7, 2), stage.say)
    finally:
        app.jobs.close()


def _tuned(runs: list[Run]) -> list[Figure]:
    if not of(runs, "tuned reference"):
        return []
    return [
        figure("ratio to a reference with HOT claims", ratios(runs, "dibs", "tuned reference")),
        figure("reference with HOT claims", [run.rate for run in of(runs, "tuned reference")], "jobs/s"),
    ]


def _result(name: str, title: str, figures: list[Figure], runs: list[Run]) -> Result:
    return Result(name, title, figures, rounds=[run.as_json() for run in runs])
