"""Ten producers at once, one job per call: their commits can share a flush of the disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

from bench.app import application
from bench.core.pairing import alternate, compared
from bench.core.result import Result
from bench.core.stage import Stage
from bench.enqueue_single import TEXT, clocked

TITLE = "single enqueue, 10 producers (threads)"
PRODUCERS = 10


def enqueue_ten(stage: Stage) -> Result:
    """How near are ten threads that enqueue to ten threads that INSERT, each over its own connection?"""
    each = stage.few(500, 100)
    with stage.database("enqueue_ten") as database, ExitStack() as stack:
        raw_side = type(database.reference)
        database.reference.create()
        connections = [stack.enter_context(closing(raw_side.connect(database.url))) for _ in range(PRODUCERS)]
        loops = [raw_side(connection) for connection in connections]
        app = application(database.url)
        stack.callback(app.jobs.close)
        threads = stack.enter_context(ThreadPoolExecutor(PRODUCERS))

        def spread(work: Callable[[int], object]) -> None:
            list(threads.map(work, range(PRODUCERS)))

        def raw(number: int) -> None:
            loops[number].insert(each)

        def ours(_: int) -> None:
            for _ in range(each):
                app.noop.enqueue(TEXT)

        spread(raw)
        spread(ours)
        runs = alternate(
            [
                lambda: clocked(database, "reference", PRODUCERS * each, lambda: spread(raw)),
                lambda: clocked(database, "dibs", PRODUCERS * each, lambda: spread(ours)),
            ],
            stage.few(8, 2),
            stage.say,
        )
    figures = compared(runs, stage.bar("enqueue_ten, ratio"))
    return Result("enqueue_ten", TITLE, figures, rounds=[run.as_json() for run in runs])
