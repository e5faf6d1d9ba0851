"""How soon does an idle worker in another process begin a job that was just committed?"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from statistics import quantiles
from typing import Any

from bench.app import Application, application
from bench.core.children import Child, children
from bench.core.result import Bar, Figure, Result
from bench.core.stage import Stage

PAUSE = (0.05, 0.15)
"""Seconds between two jobs: the worker has run dry, and sometimes has gone to sleep."""
WARM = 5
NOTE = "From the moment the producer's call returned, which is after its commit; in brackets from its beginning."
Sent = dict[str, tuple[float, float]]
"""When the call that enqueued each job began and when it returned."""


def pickup(stage: Stage) -> Result:
    """The server's, beside a plain loop that listens where the server can notify, and looks often where it cannot."""
    count = stage.few(300, 60)
    with stage.database("pickup") as database:
        raw = database.reference
        raw.create()
        app = application(database.url)
        listener = ["listen", database.url, str(count + WARM)]
        with (
            children(1, "bench.app", [database.url, "{}"], stage.log) as (worker,),
            children(1, raw.module, listener, stage.log) as (loop,),
            closing(raw.connect(database.url)) as connection,
        ):
            worker.go()
            loop.go()
            producer = type(raw)(connection)
            ours, theirs = _send(count, lambda n: app.note.enqueue(n), producer.notify)
            seen, heard = _stop(worker), loop.hear(30.0)["seen"]
        app.jobs.close()
    figures = [
        *_figures("dibs", ours, seen, (stage.bar("pickup, p50"), stage.bar("pickup, p99"))),
        *_figures(f"reference ({raw.hears})", theirs, heard),
    ]
    title = f"idle pick-up, {stage.ground.family}"
    return Result("pickup", title, figures, NOTE, _rounds(ours, seen))


def pickup_sqlite(stage: Stage) -> Result:
    """SQLite: nobody can ring, the worker watches the file."""
    with stage.sqlite("pickup") as path:
        url = f"sqlite:///{path}"
        app: Application = application(url)
        app.jobs.migrate()
        with children(1, "bench.app", [url, "{}"], stage.log) as (worker,):
            worker.go()
            (ours,) = _send(stage.few(300, 60), lambda n: app.note.enqueue(n))
            seen = _stop(worker)
        app.jobs.close()
    figures = _figures("dibs", ours, seen, (stage.bar("pickup, p50", "sqlite"), None))
    return Result("pickup_sqlite", "idle pick-up from another process, SQLite", figures, NOTE, _rounds(ours, seen))


def _send(count: int, *enqueues: Callable[[int], object]) -> list[Sent]:
    """Enqueue one at a time, in turns, at random pauses. The first few, which find cold processes, are not kept."""
    dice = random.Random(7)
    sent: list[Sent] = [{} for _ in enqueues]
    time.sleep(1.0)
    for n in range(count + WARM):
        for enqueue, noted in zip(enqueues, sent, strict=True):
            time.sleep(dice.uniform(*PAUSE))
            began = time.time()
            enqueue(n)
            noted[str(n)] = began, time.time()
    time.sleep(0.5)
    for noted in sent:
        for n in range(WARM):
            del noted[str(n)]
    return sent


def _stop(worker: Child) -> Mapping[str, float]:
    worker.ask_to_stop()
    seen: Mapping[str, float] = worker.hear(30.0)["seen"]
    return seen


def _figures(
    who: str, sent: Sent, seen: Mapping[str, float], bars: tuple[Bar | None, Bar | None] = (None, None)
) -> list[Figure]:
    after = _hundredths([(seen[n] - returned) * 1000 for n, (_, returned) in sent.items()])
    whole = _hundredths([(seen[n] - began) * 1000 for n, (began, _) in sent.items()])
    return [
        Figure(f"{who}, p50", after[49], "ms", after[24], after[74], bars[0]),
        Figure(f"{who}, p99", after[98], "ms", after[94], None, bars[1]),
        Figure(f"{who}, p50 (from the call)", whole[49], "ms"),
        Figure(f"{who}, p99 (from the call)", whole[98], "ms"),
    ]


def _hundredths(values: list[float]) -> list[float]:
    return quantiles(values, n=100, method="inclusive")


def _rounds(sent: Sent, seen: Mapping[str, float]) -> list[dict[str, Any]]:
    """Every latency in microseconds, in the order sent."""
    return [{"us": [round((seen[n] - returned) * 1e6) for n, (_, returned) in sent.items()]}]
