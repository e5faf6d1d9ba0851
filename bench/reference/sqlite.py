"""The reference on SQLite: plain statements over sqlite3, one transaction claims 100, one deletes them.

WAL and synchronous=FULL as dibs has it. As a child process: `python -m bench.reference.sqlite PATH`.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from math import inf
from typing import Any

from bench.core.children import as_child
from bench.reference.loop import BATCH, PAYLOAD, Rows, empty
from dibs.model.identity import new_ids

SCHEMA = """
drop table if exists reference_job;
create table reference_job (
    id           text    not null primary key,
    queue        text    not null,
    task         text    not null,
    priority     integer not null default 100,
    available_at integer not null,
    lease_until  integer,
    worker_id    text,
    attempts     integer not null default 0,
    payload      text    not null
) without rowid;
create index reference_claim on reference_job (queue, priority desc, available_at, id) where lease_until is null;
"""
CLAIM = f"""
update reference_job set lease_until = :now + 60000000, worker_id = 'reference', attempts = attempts + 1
 where id in (select id from reference_job
               where queue = 'bench' and lease_until is null and available_at <= :now
               order by priority desc, available_at, id limit {BATCH})
returning id, payload
"""
DELETE = f"delete from reference_job where id in ({','.join('?' * BATCH)})"
INSERT = "insert into reference_job (id, queue, task, available_at, payload) values (?, 'bench', 'noop', ?, ?)"


def connect(path: str) -> sqlite3.Connection:
    """A connection with dibs' own settings."""
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    for pragma in ("journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 4000"):
        connection.execute(f"pragma {pragma}")
    return connection


def fill(path: str, count: int) -> None:
    """A fresh table with so many jobs."""
    connection = connect(path)
    connection.executescript(SCHEMA)
    at = time.time_ns() // 1000
    connection.execute("begin")
    connection.executemany(INSERT, [(job_id, at, PAYLOAD) for job_id in new_ids(count)])
    connection.execute("commit")
    connection.execute("analyze")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()


def drain(connection: sqlite3.Connection) -> dict[str, Any]:
    """Run jobs until there are none."""

    def claim() -> Rows:
        return connection.execute(CLAIM, {"now": time.time_ns() // 1000}).fetchall()

    def delete(ids: list[str]) -> None:
        connection.execute(DELETE, [*ids, *[""] * (BATCH - len(ids))])

    return empty(claim, delete, inf)


def main() -> None:
    """Be a child of a question."""
    connection = connect(sys.argv[1])
    as_child(lambda: drain(connection))


if __name__ == "__main__":
    main()
