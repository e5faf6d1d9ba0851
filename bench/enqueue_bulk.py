"""Many jobs in one call, and the making of them."""

from __future__ import annotations

from bench import reference
from bench.app import application
from bench.core.pairing import Run, alternate, compared, of, ratios
from bench.core.result import Bar, Result, figure
from bench.core.stage import Stage
from bench.enqueue_single import TEXT, clocked

TITLE = "bulk enqueue (`enqueue_many`)"
SAME_TABLE = "copy dibs.job (id, queue, task, priority, payload) from stdin"


def enqueue_bulk(stage: Stage) -> Result:
    """How near is `enqueue_many([task.job(i) for i in ...])` to a plain COPY of the same rows?"""
    count = stage.few(25_000, 20_000)
    with stage.database("enqueue_bulk") as database:
        reference.create(database.connection)
        app = application(database.url)

        def into_our_table() -> None:
            with database.connection.cursor() as cursor, cursor.copy(SAME_TABLE.encode()) as load:
                load.write(reference.lines(count))

        def timed(who: str) -> Run:
            work = {
                "reference": lambda: reference.copy(database.connection, count),
                "dibs": lambda: app.jobs.enqueue_many([app.noop.job(TEXT) for _ in range(count)]),
                "COPY into dibs.job": into_our_table,
            }[who]
            return clocked(database, who, count, work)

        runs = alternate(
            [lambda: timed("reference"), lambda: timed("dibs"), lambda: timed("COPY into dibs.job")],
            stage.few(8, 2),
            stage.say,
        )
        app.jobs.close()
    figures = [
        *compared(runs, Bar("at least", 0.6)),
        figure("ratio to a plain COPY into dibs' own table", ratios(runs, "dibs", "COPY into dibs.job")),
        figure("COPY into dibs.job", [run.rate for run in of(runs, "COPY into dibs.job")], "jobs/s"),
    ]
    note = "The reference copies into a table with two indexes and no checks; making the rows is counted on both sides."
    return Result("enqueue_bulk", TITLE, figures, note, [run.as_json() for run in runs])
