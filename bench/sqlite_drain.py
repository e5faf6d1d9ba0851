"""How fast does one worker process empty a SQLite file?"""

from __future__ import annotations

import json
import sqlite3
import time

from bench.app import Application, application
from bench.core.children import children
from bench.core.pairing import Run, alternate, compared, of
from bench.core.result import Result, figure
from bench.core.stage import Stage
from bench.draining import DRAIN_SECONDS, LOOK_SECONDS, TEXT
from bench.reference import sqlite as reference

CLEAR = "delete from dibs_job; delete from dibs_history; analyze; pragma wal_checkpoint(truncate);"


def sqlite_drain(stage: Stage) -> Result:
    """Beside a plain loop over sqlite3 that claims and deletes a hundred per transaction."""
    jobs = stage.few(50_000, 15_000)
    with stage.sqlite("ours") as path, stage.sqlite("theirs") as raw_path:
        app = application(f"sqlite:///{path}")
        app.jobs.migrate()
        runs = alternate(
            [lambda: _theirs(stage, raw_path, jobs), lambda: _ours(stage, app, path, jobs)],
            stage.few(7, 2),
            stage.say,
        )
        app.jobs.close()
    figures = [
        *compared(runs, stage.bar("drain, ratio", "sqlite")),
        figure("dibs, rate", [run.rate for run in of(runs, "dibs")], "jobs/s", stage.bar("drain, rate", "sqlite")),
    ]
    return Result(
        "sqlite_drain", "SQLite drain, 1 process, synchronous=FULL", figures, rounds=[run.as_json() for run in runs]
    )


def _theirs(stage: Stage, path: str, jobs: int) -> Run:
    reference.fill(path, jobs)
    with children(1, "bench.reference.sqlite", [path], stage.log) as (loop,):
        loop.go()
        answer = loop.hear(DRAIN_SECONDS)
    return Run("reference", answer["jobs"], answer["ended"] - answer["began"], answer["cpu"])


def _ours(stage: Stage, app: Application, path: str, jobs: int) -> Run:
    looking = sqlite3.connect(path, timeout=30, isolation_level=None)
    looking.executescript(CLEAR)
    handles = app.jobs.enqueue_many([app.noop.job(TEXT) for _ in range(jobs)])
    looking.executescript("analyze; pragma wal_checkpoint(truncate);")
    options = json.dumps({"until_empty": True})
    with children(1, "bench.app", [app.jobs.url, options], stage.log) as (worker,):
        worker.go()
        ended = _await_end(looking, handles[-1].id)
        cpu = worker.hear(DRAIN_SECONDS)["cpu"]
    (began,) = looking.execute("select min(claimed_at) / 1e6 from dibs_history").fetchone()
    (finished,) = looking.execute("select count(*) from dibs_history where outcome = 'completed'").fetchone()
    looking.close()
    if finished != jobs:
        raise AssertionError(f"{finished} of {jobs} jobs are completed")
    return Run("dibs", jobs, ended - began, cpu)


def _await_end(looking: sqlite3.Connection, last: str) -> float:
    deadline = time.monotonic() + DRAIN_SECONDS
    while looking.execute(
        "select 1 from dibs_job where id = ? union all select 1 from dibs_job limit 1", (last,)
    ).fetchone():
        if time.monotonic() > deadline:
            raise TimeoutError(f"jobs are left after {DRAIN_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    return time.time()
