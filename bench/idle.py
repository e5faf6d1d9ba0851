"""What does a worker cost that has nothing to do?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.app import application
from bench.core import machine
from bench.core.children import Child, children
from bench.core.result import Figure, Result
from bench.core.stage import Stage

SETTLING = 5.0
STATEMENTS = "select xact_commit + xact_rollback from pg_stat_database where datname = 'idle'"


def idle(stage: Stage) -> Result:
    """Statements per second and processor time of one idle worker, on both databases."""
    span = stage.few(20, 10)
    figures = [*_postgres(stage, span), *_sqlite(stage, span)]
    return Result("idle", f"an idle worker, for {span} s", figures, "Statements are counted as transactions.")


def _postgres(stage: Stage, span: int) -> list[Figure]:
    with (
        stage.database("idle") as database,
        _idling(stage, database.url) as worker,
        psycopg.connect(stage.server.url(), autocommit=True) as elsewhere,
    ):
        cpu, server = machine.cpu_of(worker.pid), stage.server.cpu_seconds()
        (before,) = elsewhere.execute(STATEMENTS).fetchone() or (0,)
        time.sleep(span)
        (after,) = elsewhere.execute(STATEMENTS).fetchone() or (0,)
        cpu, server = machine.cpu_of(worker.pid) - cpu, stage.server.cpu_seconds() - server
    return [
        Figure("PostgreSQL, statements", (after - before) / span, "per second"),
        Figure("PostgreSQL, worker CPU", cpu / span * 1000, "ms per second"),
        Figure("PostgreSQL, server CPU", server / span * 1000, "ms per second"),
    ]


def _sqlite(stage: Stage, span: int) -> list[Figure]:
    with stage.sqlite("idle") as path:
        url = f"sqlite:///{path}"
        application(url).jobs.migrate()
        with _idling(stage, url) as worker:
            cpu = machine.cpu_of(worker.pid)
            time.sleep(span)
            cpu = machine.cpu_of(worker.pid) - cpu
    return [Figure("SQLite, worker CPU", cpu / span * 1000, "ms per second")]


@contextmanager
def _idling(stage: Stage, url: str) -> Iterator[Child]:
    with children(1, "bench.app", [url, "{}"], stage.log) as (worker,):
        worker.go()
        time.sleep(SETTLING)
        yield worker
        worker.ask_to_stop()
        worker.hear(30.0)
