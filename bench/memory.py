"""Does a worker grow?"""

from __future__ import annotations

import time
from statistics import linear_regression, median

from bench.app import Application, application
from bench.core import machine
from bench.core.children import Child, children
from bench.core.result import Figure, Result
from bench.core.stage import Stage
from bench.draining import TEXT
from bench.grounds.database import Database

CHUNK = 10_000
WAITING = 20_000
"""The backlog that the feeder keeps up."""
WARM = 0.2
"""The share of the jobs after which the worker should have its size."""
LONGEST = 240.0


def memory(stage: Stage) -> Result:
    """Resident memory of a worker process over a million jobs."""
    jobs = stage.few(1_000_000, 200_000)
    with stage.database("memory") as database:
        app = application(database.url)
        with children(1, "bench.app", [database.url, "{}"], stage.log) as (worker,):
            at_first = machine.resident_mb(worker.pid)
            worker.go()
            samples = _feed(database, app, worker, jobs)
            worker.ask_to_stop()
            worker.hear(60.0)
        app.jobs.close()
    warm = [sample for sample in samples if sample[0] >= WARM * jobs]
    slope = linear_regression([done / 1e6 for done, _ in warm], [size for _, size in warm]).slope
    figures = [
        Figure("largest", max(size for _, size in samples), "MB", bar=stage.bar("memory, largest")),
        Figure("growth after the first fifth", slope, "MB per million jobs", bar=stage.bar("memory, growth")),
        Figure("before the first job", at_first, "MB"),
        Figure("median", median(size for _, size in samples), "MB"),
        Figure("at the end", samples[-1][1], "MB"),
        Figure("jobs", samples[-1][0]),
    ]
    told = [{"jobs": done, "mb": round(size, 1)} for done, size in samples]
    return Result("memory", f"worker memory, {jobs:,} jobs", figures, rounds=told)


def _feed(database: Database, app: Application, worker: Child, jobs: int) -> list[tuple[int, float]]:
    """Enqueue as fast as the worker works; answers (jobs done, megabytes) twice a second."""
    samples: list[tuple[int, float]] = []
    fed, waiting = 0, 1
    began = time.monotonic()
    while waiting and time.monotonic() < began + LONGEST:
        waiting = database.count(database.job)
        if fed < jobs and waiting < WAITING:
            app.jobs.enqueue_many([app.noop.job(TEXT) for _ in range(CHUNK)])
            fed, waiting = fed + CHUNK, waiting + CHUNK
        else:
            time.sleep(0.05)
        if len(samples) < 2 * (time.monotonic() - began):
            samples.append((fed - waiting, machine.resident_mb(worker.pid)))
    samples.append((fed - waiting, machine.resident_mb(worker.pid)))
    return samples
