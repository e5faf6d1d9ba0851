"""What does a worker cost that has nothing to do?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.app import application
from bench.core import machine
from bench.core.children import Child, children
from bench.core.result import Figure, Result
from bench.core.stage import Stage

SETTLING = 5.0
NOTE = "On PostgreSQL statements are counted as transactions."


def idle(stage: Stage) -> Result:
    """Statements per second and processor time of one idle worker on the server."""
    span, who = stage.few(20, 10), stage.ground.family
    with stage.database("idle") as database, _idling(stage, database.url) as worker:
        cpu, server, before = machine.cpu_of(worker.pid), stage.server.cpu_seconds(), database.statements()
        time.sleep(span)
        sent = database.statements() - before
        cpu, server = machine.cpu_of(worker.pid) - cpu, stage.server.cpu_seconds() - server
    figures = [
        Figure(f"{who}, statements", sent / span, "per second", bar=stage.bar("idle, statements")),
        Figure(f"{who}, worker CPU", cpu / span * 1000, "ms per second"),
        Figure(f"{who}, server CPU", server / span * 1000, "ms per second"),
    ]
    return Result("idle", f"an idle worker on {who}, for {span} s", figures, NOTE)


def idle_sqlite(stage: Stage) -> Result:
    """Processor time of one idle worker on a file: looking costs no statement there."""
    span = stage.few(20, 10)
    with stage.sqlite("idle") as path:
        url = f"sqlite:///{path}"
        application(url).jobs.migrate()
        with _idling(stage, url) as worker:
            cpu = machine.cpu_of(worker.pid)
            time.sleep(span)
            cpu = machine.cpu_of(worker.pid) - cpu
    figures = [Figure("SQLite, worker CPU", cpu / span * 1000, "ms per second")]
    return Result("idle_sqlite", f"an idle worker on SQLite, for {span} s", figures)


@contextmanager
def _idling(stage: Stage, url: str) -> Iterator[Child]:
    with children(1, "bench.app", [url, "{}"], stage.log) as (worker,):
        worker.go()
        time.sleep(SETTLING)
        yield worker
        worker.ask_to_stop()
        worker.hear(30.0)
