"""Does a claim cost more when much is waiting, or when much is scheduled for later in front of it?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from bench import reference
from bench.core.pairing import Run, alternate, of, ratios
from bench.core.result import Bar, Figure, Result, figure
from bench.core.stage import Database, Stage
from bench.draining import Drain, ours, theirs

JOBS = 50_000
DAY = 86_400
LOAD = """
insert into dibs.job (queue, task, priority, payload, available_at)
select 'bench', 'noop', %s, cast(%s as text)::jsonb, clock_timestamp() + %s * interval '1 second'
  from generate_series(1, %s)
"""
LANES = "insert into dibs.lane (queue, priority) values ('bench', 100), ('bench', 150) on conflict do nothing"
LAST = """
select cast(id as text) from dibs.job where queue = 'bench' and priority = 100
 order by available_at, id offset %s limit 1
"""
NOTE = "Both databases are vacuumed before each run, so that the cleaning up after the load is in none of the figures."


def backlog_million(stage: Stage) -> Result:
    """The first 50,000 of 1,000,000 waiting jobs, and 50,000 of 50,000."""
    waiting = stage.few(1_000_000, 300_000)

    def fill(database: Database, jobs: int) -> None:
        _load(database, jobs)

    def fill_raw(database: Database, jobs: int) -> None:
        reference.spread(database.connection, jobs)

    runs = _compare(stage, waiting, fill, fill_raw, JOBS)
    title = f"the first {JOBS:,} of {waiting:,} waiting"
    return Result("backlog_million", title, _figures(runs), NOTE, [run.as_json() for run in runs])


def scheduled_above(stage: Stage) -> Result:
    """50,000 ready jobs below 500,000 that are scheduled for tomorrow at a higher priority."""
    later = stage.few(500_000, 150_000)

    def fill(database: Database, jobs: int) -> None:
        ready = min(jobs, JOBS)
        _load(database, jobs - ready, priority=150, delay=DAY)
        _load(database, ready)

    def fill_raw(database: Database, jobs: int) -> None:
        ready = min(jobs, JOBS)
        reference.spread(database.connection, jobs - ready, priority=150, delay=DAY)
        reference.spread(database.connection, ready)

    runs = _compare(stage, JOBS + later, fill, fill_raw, 1_000)
    title = f"{JOBS:,} ready below {later:,} scheduled at a higher priority"
    note = f"{NOTE} The reference is stopped after 1,000 there: before PostgreSQL 18 it walks over what is not due."
    return Result("scheduled_above", title, _figures(runs), note, [run.as_json() for run in runs])


Fill = Callable[[Database, int], None]


def _compare(stage: Stage, stored: int, fill: Fill, fill_raw: Fill, raw_jobs: int) -> list[Run]:
    """Turns on two databases: one with 50,000 jobs, and one with many, topped up after each run."""
    with ExitStack() as closing:
        few = closing.enter_context(stage.database("backlog_few"))
        many = closing.enter_context(stage.database("backlog_many"))
        for database in (few, many):
            reference.create(database.connection)
            database.execute(LANES)

        def mine(database: Database, jobs: int, who: str) -> Run:
            _top_up(database, "dibs.job", jobs, fill)
            last = str(database.value(LAST, JOBS - 1))
            drain = Drain(JOBS, stored=jobs)
            return ours(stage, database, drain, last, who).first(JOBS)

        def raw(database: Database, jobs: int, most: int, who: str) -> Run:
            _top_up(database, "reference.job", jobs, fill_raw)
            return theirs(stage, database, Drain(most), who).run

        takes = [
            lambda: mine(few, JOBS, "dibs"),
            lambda: mine(many, stored, "dibs, many"),
            lambda: raw(few, JOBS, JOBS, "reference"),
            lambda: raw(many, stored, raw_jobs, "reference, many"),
        ]
        return alternate(takes, stage.few(4, 1), stage.say)


def _load(database: Database, jobs: int, priority: int = 100, delay: int = 0) -> None:
    if jobs:
        database.execute(LOAD, priority, reference.PAYLOAD, delay, jobs)


def _top_up(database: Database, table: str, jobs: int, fill: Fill) -> None:
    """Store what is missing. The first time that is all; later only the ready ones are."""
    database.execute("truncate dibs.history")
    there = int(database.value(f"select count(*) from {table}"))
    if there == 0:
        fill(database, jobs)
    elif there < jobs:
        fill(database, min(jobs - there, JOBS))
    database.settle_down(table, "dibs.history", vacuum=True)


def _figures(runs: list[Run]) -> list[Figure]:
    who = ("dibs", "dibs, many", "reference", "reference, many")
    return [
        figure("rate by that with 50,000 waiting", ratios(runs, "dibs, many", "dibs"), "", Bar("at least", 0.85)),
        figure("the reference's", ratios(runs, "reference, many", "reference")),
        *[figure(name, [run.rate for run in of(runs, name)], "jobs/s") for name in who],
        *[figure(f"{name}, server CPU", [run.server_us for run in of(runs, name)], "µs/job") for name in who],
    ]
