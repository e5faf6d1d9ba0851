"""Where a driver's processor time goes: the raw loop, and its parts, with each driver that is installed."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing

from bench.core.pairing import Run, alternate, of
from bench.core.result import Figure, Result, figure
from bench.core.stage import Stage
from bench.draining import fill_reference
from bench.grounds.database import Database
from bench.reference.loop import PAYLOAD, Reference

ROWS = 500
TIMES = 40
NARROW = f"select id, payload from {{table}} limit {ROWS}"
WIDE = f"""
select id, task, payload, attempts + 1, attempts + 1, priority, attempts, 1767225600000000, 1767225660000000,
       1767225600000000, lease_until, worker_id from {{table}} limit {ROWS}
"""
"""As many columns, and of the same kinds, as dibs reads at a claim."""
LONG = "[" + ",".join([PAYLOAD] * 1_000) + "]"
NOTE = "Processor time of the client alone: encryption where the server offers it and the kernel's share are in it."


def drivers(stage: Stage) -> Result:
    """What do sending, reading a row and quoting a text cost?"""
    jobs = stage.few(50_000, 20_000)
    with stage.database("drivers") as database, ExitStack() as closing_all:
        kinds = stage.ground.drivers()
        chosen = {kind.driver: closing_all.enter_context(closing(kind.connect(database.url))) for kind in kinds}
        loops = [kind(chosen[kind.driver]) for kind in kinds]
        takes = [lambda loop=loop: _drained(database, loop, jobs) for loop in loops]
        runs = alternate(takes, stage.few(5, 2), stage.say)
        fill_reference(database, ROWS)
        parts = [found for loop in loops for found in _parts(loop)]
    figures = [
        *[figure(name, [run.rate for run in of(runs, name)], "jobs/s") for name in chosen],
        *[figure(f"{name}, the loop", [run.client_us for run in of(runs, name)], "µs/job") for name in chosen],
        *parts,
    ]
    title = f"drivers of {stage.ground.family}: the raw loop in one process, and its parts"
    return Result("drivers", title, figures, NOTE, [run.as_json() for run in runs])


def _drained(database: Database, loop: Reference, jobs: int) -> Run:
    fill_reference(database, jobs)
    server, client = database.server.cpu_seconds(), time.process_time()
    told = loop.drain(jobs)
    client, server = time.process_time() - client, database.server.cpu_seconds() - server
    return Run(loop.driver, told["jobs"], told["ended"] - told["began"], client, server)


def _parts(loop: Reference) -> list[Figure]:
    narrow, wide = NARROW.format(table=loop.table), WIDE.format(table=loop.table)
    return [
        figure(f"{loop.driver}, a round trip", _spent(loop, "select 1"), "µs"),
        figure(f"{loop.driver}, a row of 2 columns", [us / ROWS for us in _spent(loop, narrow)], "µs"),
        figure(f"{loop.driver}, a row of 12 columns", [us / ROWS for us in _spent(loop, wide)], "µs"),
        figure(
            f"{loop.driver}, 1,000 payloads as one parameter",
            [us / 1_000 for us in _spent(loop, "select length(%s)", LONG)],
            "µs/payload",
        ),
    ]


def _spent(loop: Reference, statement: str, *params: str) -> list[float]:
    """Microseconds of each time it was sent, and its answer read."""
    spent = []
    with loop.connection.cursor() as cursor:
        for _ in range(TIMES):
            before = time.process_time()
            cursor.execute(statement, params or None)
            cursor.fetchall()
            spent.append((time.process_time() - before) * 1e6)
    return spent
