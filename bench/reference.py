"""The reference on PostgreSQL: plain statements over psycopg, claim 100, then delete the 100. No history, no retries.

As fast as this shape goes: prepared statements, ids as one array literal, the payload decoded by msgspec, one
plain function call per job. As a child process it drains (`python -m bench.reference drain URL`) or answers
the bell (`... listen URL`).
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from bench.core.children import as_child
from dibs.model.identity import new_ids
from dibs.model.json_text import decode

BATCH = 100
PAYLOAD = '{"text": "' + "x" * 88 + '"}'
"""100 bytes of JSON."""

SCHEMA = """
drop schema if exists reference cascade;
create schema reference;
create table reference.job (
    id           uuid        not null primary key,
    queue        text        not null,
    task         text        not null,
    priority     integer     not null default 100,
    available_at timestamptz not null default clock_timestamp(),
    lease_until  timestamptz,
    worker_id    text,
    attempts     integer     not null default 0,
    payload      jsonb       not null
);
create index job_claim on reference.job (queue, priority desc, available_at, id) where lease_until is null;
"""
HOT = """
alter table reference.job set (fillfactor = 50);
drop index reference.job_claim;
create index job_claim on reference.job (queue, priority desc, available_at, id);
"""
"""The same with dibs' own trick, claims that change no index: a faster reference than the one of the bars."""

CLAIM = f"""
with c as materialized (
    select id from reference.job
     where queue = %s and lease_until is null and available_at <= now()
     order by priority desc, available_at, id limit {BATCH} for update skip locked
)
update reference.job j set lease_until = now() + interval '60 s', worker_id = %s, attempts = attempts + 1
  from c where j.id = c.id
returning cast(j.id as text), cast(j.payload as text)
"""
DELETE = "delete from reference.job where id = any (cast(cast(%s as text) as uuid[]))"
INSERT = """
insert into reference.job (id, queue, task, priority, payload)
values (cast(cast(%s as text) as uuid), %s, %s, %s, cast(cast(%s as text) as jsonb))
"""
COPY = "copy reference.job (id, queue, task, priority, payload) from stdin"
SPREAD = """
insert into reference.job (id, queue, task, priority, payload, available_at)
select dibs.new_id(), 'bench', 'noop', %s, cast(%s as text)::jsonb, clock_timestamp() + %s * interval '1 second'
  from generate_series(1, %s)
"""


def create(connection: psycopg.Connection[Any], hot: bool = False) -> None:
    """An empty table."""
    connection.execute(SCHEMA.encode())
    if hot:
        connection.execute(HOT.encode())


def lines(count: int) -> str:
    """Rows as COPY takes them."""
    return "".join([f"{job_id}\tbench\tnoop\t100\t{PAYLOAD}\n" for job_id in new_ids(count)])


def copy(connection: psycopg.Connection[Any], count: int) -> None:
    """Store many jobs in bulk: the making of the rows included."""
    with connection.cursor() as cursor, cursor.copy(COPY.encode()) as load:
        load.write(lines(count))


def spread(connection: psycopg.Connection[Any], count: int, priority: int = 100, delay: int = 0) -> None:
    """Store very many jobs without a client."""
    connection.execute(SPREAD.encode(), (priority, PAYLOAD, delay, count))


def noop(text: str) -> None:
    """The handler."""


def drain(connection: psycopg.Connection[Any], most: int) -> dict[str, Any]:
    """Run jobs until there are none, or so many are done. Answers when it began and when each batch was done."""
    cursor = connection.cursor()
    claim, delete = CLAIM.encode(), DELETE.encode()
    done, curve = 0, []
    began = time.time()
    while done < most:
        rows: Sequence[tuple[str, str]] = cursor.execute(claim, ("bench", "reference"), prepare=True).fetchall()
        if not rows:
            break
        for _, payload in rows:
            noop(**decode(payload))
        cursor.execute(delete, ("{" + ",".join([job_id for job_id, _ in rows]) + "}",), prepare=True)
        done += len(rows)
        curve.append((time.time(), done))
    return {"began": began, "ended": curve[-1][0] if curve else began, "jobs": done, "curve": curve}


def listen(connection: psycopg.Connection[Any], most: int) -> dict[str, Any]:
    """Wait for the bell, claim, note when the handler starts; until so many have been seen."""
    cursor = connection.cursor()
    connection.execute("listen reference")
    seen: dict[str, float] = {}
    while len(seen) < most:
        rows = cursor.execute(CLAIM.encode(), ("bench", "reference"), prepare=True).fetchall()
        for _, payload in rows:
            seen[str(decode(payload)["n"])] = time.time()
        if rows:
            ids = "{" + ",".join([job_id for job_id, _ in rows]) + "}"
            cursor.execute(DELETE.encode(), (ids,), prepare=True)
        else:
            any(True for _ in connection.notifies(timeout=1.0, stop_after=1))
    return {"seen": seen}


def main() -> None:
    """Be a child of a question."""
    mode, url, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with psycopg.connect(url, autocommit=True, application_name="reference") as connection:
        work = {"drain": drain, "listen": listen}[mode]
        as_child(lambda: work(connection, most))


if __name__ == "__main__":
    main()
