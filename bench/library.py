"""How fast is a loop of the user's own over `dequeue` and `ack_many`?"""

from __future__ import annotations

import time

from bench.app import QUEUE, Application, application
from bench.core.pairing import Run, alternate, compared
from bench.core.result import Result
from bench.core.stage import Stage
from bench.draining import Drain, check_all_finished, fill_reference, store, theirs
from bench.grounds.database import Database
from bench.reference.loop import noop

BATCH = 500


def library(stage: Stage) -> Result:
    """One thread, batches of 500, no worker; for information."""
    jobs = stage.few(50_000, 20_000)
    with stage.database("library") as database:
        app = application(database.url)

        def raw() -> Run:
            database.clear()
            fill_reference(database, jobs)
            return theirs(stage, database, Drain(jobs)).run

        def mine() -> Run:
            store(database, app, Drain(jobs))
            database.settle_down(database.job)
            run = _loop(database, app)
            check_all_finished(database, jobs)
            return run

        runs = alternate([raw, mine], stage.few(4, 1), stage.say)
        app.jobs.close()
    return Result("library", "`dequeue` and `ack_many`", compared(runs, None), rounds=[run.as_json() for run in runs])


def _loop(database: Database, app: Application) -> Run:
    server, client, began = database.server.cpu_seconds(), time.process_time(), time.perf_counter()
    done = 0
    while jobs := app.jobs.dequeue([QUEUE], limit=BATCH):
        for job in jobs:
            noop(**job.payload)
        app.jobs.ack_many(jobs)
        done += len(jobs)
    seconds = time.perf_counter() - began
    return Run("dibs", done, seconds, time.process_time() - client, database.server.cpu_seconds() - server)
