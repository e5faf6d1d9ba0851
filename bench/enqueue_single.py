"""One producer, one job per call, each committed before the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bench.app import application
from bench.core.pairing import Run, alternate, compared, of, ratios
from bench.core.result import Result, figure
from bench.core.stage import Stage
from bench.grounds.database import Database

TITLE = "single enqueue, 1 producer"
TEXT = "x" * 88


def enqueue_single(stage: Stage) -> Result:
    """How near is `task.enqueue(...)` to a plain INSERT of the same row?"""
    count = stage.few(800, 400)
    with stage.database("enqueue_single") as database:
        database.reference.create()
        app = application(database.url)

        async def many() -> None:
            for _ in range(count):
                await app.noop.aenqueue(TEXT)

        def timed(who: str, work: Callable[[], object]) -> Run:
            return clocked(database, who, count, work)

        runs = alternate(
            [
                lambda: timed("reference", lambda: database.reference.insert(count)),
                lambda: timed("dibs", lambda: [app.noop.enqueue(TEXT) for _ in range(count)]),
                lambda: timed("dibs, awaited", lambda: asyncio.run(many())),
            ],
            stage.few(10, 3),
            stage.say,
        )
        app.jobs.close()
    awaited = of(runs, "dibs, awaited")
    figures = [
        *compared(runs, stage.bar("enqueue_single, ratio")),
        figure("ratio of aenqueue, one after the other", ratios(runs, "dibs, awaited", "reference")),
        figure("dibs, awaited", [run.rate for run in awaited], "jobs/s"),
        figure("dibs, awaited, client CPU", [run.client_us for run in awaited], "µs/job"),
    ]
    return Result("enqueue_single", TITLE, figures, rounds=[run.as_json() for run in runs])


def clocked(database: Database, who: str, count: int, work: Callable[[], object]) -> Run:
    """Time something that this process does, from clean tables."""
    database.clear()
    database.forget(database.reference.table)
    database.settle_down()
    server, client, began = database.server.cpu_seconds(), time.process_time(), time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Run(who, count, seconds, time.process_time() - client, database.server.cpu_seconds() - server)
