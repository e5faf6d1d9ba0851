"""Many jobs in one call, and the making of them."""

from __future__ import annotations

from bench.app import application
from bench.core.pairing import Run, alternate, compared, of, ratios
from bench.core.result import Result, figure
from bench.core.stage import Stage
from bench.enqueue_single import TEXT, clocked

TITLE = "bulk enqueue (`enqueue_many`)"
NOTE = "The reference's table has two indexes and no checks; making the rows is counted on both sides."


def enqueue_bulk(stage: Stage) -> Result:
    """How near is `enqueue_many([task.job(i) for i in ...])` to the fastest plain way to store the same rows?"""
    count = stage.few(25_000, 20_000)
    with stage.database("enqueue_bulk") as database:
        reference = database.reference
        reference.create()
        app = application(database.url)
        same_table = f"{reference.in_bulk} into {database.job}"

        def timed(who: str) -> Run:
            work = {
                "reference": lambda: reference.bulk(reference.table, count),
                "dibs": lambda: app.jobs.enqueue_many([app.noop.job(TEXT) for _ in range(count)]),
                same_table: lambda: reference.bulk(database.job, count),
            }[who]
            return clocked(database, who, count, work)

        runs = alternate(
            [lambda: timed("reference"), lambda: timed("dibs"), lambda: timed(same_table)],
            stage.few(8, 2),
            stage.say,
        )
        app.jobs.close()
    figures = [
        *compared(runs, stage.bar("enqueue_bulk, ratio")),
        figure(f"ratio to plain {reference.in_bulk} into dibs' own table", ratios(runs, "dibs", same_table)),
        figure(same_table, [run.rate for run in of(runs, same_table)], "jobs/s"),
    ]
    return Result("enqueue_bulk", TITLE, figures, NOTE, [run.as_json() for run in runs])
