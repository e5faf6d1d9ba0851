"""Does a claim cost more when much is waiting, or when much is scheduled for later in front of it?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from bench.core.pairing import Run, alternate, of, ratios
from bench.core.result import Result, figure
from bench.core.stage import Stage
from bench.draining import Drain, ours, theirs
from bench.grounds.database import Database

JOBS = 50_000
DAY = 86_400
NOTE = "What the load left dead is cleaned up before each run, so that it is in none of the figures."


def backlog_million(stage: Stage) -> Result:
    """The first 50,000 of 1,000,000 waiting jobs, and 50,000 of 50,000."""
    waiting = stage.few(1_000_000, 300_000)

    def fill(database: Database, table: str, jobs: int) -> None:
        database.reference.spread(table, jobs)

    runs = _compare(stage, waiting, fill, JOBS)
    title = f"the first {JOBS:,} of {waiting:,} waiting"
    return _result("backlog_million", title, NOTE, stage, runs)


def scheduled_above(stage: Stage) -> Result:
    """50,000 ready jobs below 500,000 that are scheduled for tomorrow at a higher priority."""
    later = stage.few(500_000, 150_000)

    def fill(database: Database, table: str, jobs: int) -> None:
        ready = min(jobs, JOBS)
        database.reference.spread(table, jobs - ready, priority=150, delay=DAY)
        database.reference.spread(table, ready)

    runs = _compare(stage, JOBS + later, fill, 1_000)
    title = f"{JOBS:,} ready below {later:,} scheduled at a higher priority"
    note = f"{NOTE} The reference is stopped after 1,000 there: but for PostgreSQL 18, it walks over what is not due."
    return _result("scheduled_above", title, note, stage, runs)


Fill = Callable[[Database, str, int], None]


def _compare(stage: Stage, stored: int, fill: Fill, raw_jobs: int) -> list[Run]:
    """Turns on two databases: one with 50,000 jobs, and one with many, topped up after each run."""
    with ExitStack() as closing:
        few = closing.enter_context(stage.database("backlog_few"))
        many = closing.enter_context(stage.database("backlog_many"))
        for database in (few, many):
            database.reference.create()
            database.know_lanes(100, 150)

        def mine(database: Database, jobs: int, who: str) -> Run:
            _top_up(database, database.job, jobs, fill)
            last = database.place(JOBS - 1)
            drain = Drain(JOBS, stored=jobs)
            return ours(stage, database, drain, last, who).first(JOBS)

        def raw(database: Database, jobs: int, most: int, who: str) -> Run:
            _top_up(database, database.reference.table, jobs, fill)
            return theirs(stage, database, Drain(most), who).run

        takes = [
            lambda: mine(few, JOBS, "dibs"),
            lambda: mine(many, stored, "dibs, many"),
            lambda: raw(few, JOBS, JOBS, "reference"),
            lambda: raw(many, stored, raw_jobs, "reference, many"),
        ]
        return alternate(takes, stage.few(4, 1), stage.say)


def _top_up(database: Database, table: str, jobs: int, fill: Fill) -> None:
    """Store what is missing. The first time that is all; later only the ready ones are."""
    database.forget(database.history)
    there = database.count(table)
    if there == 0:
        fill(database, table, jobs)
    elif there < jobs:
        fill(database, table, min(jobs - there, JOBS))
    database.settle_down(table, database.history, vacuum=True)


def _result(name: str, title: str, note: str, stage: Stage, runs: list[Run]) -> Result:
    who = ("dibs", "dibs, many", "reference", "reference, many")
    figures = [
        figure("rate by that with 50,000 waiting", ratios(runs, "dibs, many", "dibs"), "", stage.bar(name)),
        figure("the reference's", ratios(runs, "reference, many", "reference")),
        *[figure(each, [run.rate for run in of(runs, each)], "jobs/s") for each in who],
        *[figure(f"{each}, server CPU", [run.server_us for run in of(runs, each)], "µs/job") for each in who],
    ]
    return Result(name, title, figures, note, [run.as_json() for run in runs])
