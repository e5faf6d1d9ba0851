"""The reference on MySQL and MariaDB: plain statements over PyMySQL at READ COMMITTED, claim 100, then delete the 100.

As fast as this shape goes: five round trips per hundred (begin, select, update, commit, delete), ids as literals, the
payload decoded by msgspec, one plain function call per job. The index is in the order of the claim, so that
nothing is sorted, and holds nothing that a claim changes: with `lease_until` in front of `priority` it was 15 to
25 % slower on MySQL 9.7. MariaDB and MySQL are sent the same.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql

from bench.reference.loop import BATCH, PAYLOAD, Connection, Reference, Rows, be_child
from dibs.model.identity import new_id, new_ids

TABLE = """
create table reference_job (
    id           char(36) character set ascii collate ascii_bin not null primary key,
    queue        varchar(64) character set ascii collate ascii_bin not null,
    task         varchar(64) character set ascii collate ascii_bin not null,
    priority     integer     not null default 100,
    available_at datetime(6) not null default (utc_timestamp(6)),
    lease_until  datetime(6),
    worker_id    varchar(191),
    attempts     integer     not null default 0,
    payload      longtext    not null,
    index reference_claim (queue, priority desc, available_at, id)
) engine = innodb, character set utf8mb4, collate utf8mb4_bin
"""
SELECT = f"""
select id, payload from reference_job
 where queue = 'bench' and lease_until is null and available_at <= utc_timestamp(6)
 order by priority desc, available_at, id limit {BATCH} for update skip locked
"""
UPDATE = """
update reference_job set lease_until = utc_timestamp(6) + interval 60 second, worker_id = 'reference',
       attempts = attempts + 1 where id in """
DELETE = "delete from reference_job where id in "
COLUMNS = "(id, queue, task, priority, payload)"
INSERT = f"insert into reference_job {COLUMNS} values (%s, %s, %s, %s, %s)"
SPREAD = """
insert into {table} (id, queue, task, priority, payload, available_at)
with recursive step (n) as (select 0 union all select n + 1 from step where n < 999)
select concat(%s, lpad(lower(hex(a.n * 1000 + b.n)), 12, '0')), 'bench', 'noop', %s, %s,
       utc_timestamp(6) + interval %s second + interval a.n * 1000 + b.n microsecond
  from step a cross join step b where a.n * 1000 + b.n < %s order by a.n, b.n
"""
ROWS = 1_000
"""Of one INSERT."""
SPREAD_ROWS = 100_000
"""Of one transaction."""
PAUSE = 0.025
"""Seconds between two looks of an idle loop."""


class MysqlReference(Reference):
    """PyMySQL."""

    driver = "PyMySQL"
    table = "reference_job"
    module = "bench.reference.mysql"
    in_bulk = "INSERTs of 1,000"
    hears = f"looks every {PAUSE * 1000:g} ms"
    tunable = False

    @classmethod
    def connect(cls, url: str) -> Connection:
        """A connection in autocommit mode; encrypted if the server can, as dibs' own is."""
        parts = urlsplit(url)
        arguments = {
            "host": parts.hostname,
            "port": parts.port or 3306,
            "user": parts.username,
            "password": unquote(parts.password or ""),
            "database": parts.path[1:],
            "charset": "utf8mb4",
            "autocommit": True,
            "init_command": "set session transaction isolation level read committed",
        }
        return cls._open(arguments)

    @staticmethod
    def _open(arguments: dict[str, Any]) -> Connection:
        return pymysql.connect(**arguments)

    def create(self, tuned: bool = False) -> None:
        """An empty table, made anew."""
        assert not tuned
        self._send("drop table if exists reference_job")
        self._send(TABLE)

    def insert(self, count: int) -> None:
        """One statement after the other, ids made beforehand."""
        with self.connection.cursor() as cursor:
            for job_id in new_ids(count):
                cursor.execute(INSERT, (job_id, "bench", "noop", 100, PAYLOAD))

    def bulk(self, table: str, count: int) -> None:
        """A thousand rows an INSERT, written out, in one transaction. `executemany` quotes each value: 0.6 of this."""
        self.connection.begin()
        for start in range(0, count, ROWS):
            ids = new_ids(min(ROWS, count - start))
            rows = ",".join([f"('{job_id}','bench','noop',100,'{PAYLOAD}')" for job_id in ids])
            self._send(f"insert into {table} {COLUMNS} values {rows}")
        self.connection.commit()

    def spread(self, table: str, count: int, priority: int = 100, delay: int = 0) -> None:
        """100,000 a statement, each with ids in order and a time of its own."""
        statement = SPREAD.format(table=table)
        for start in range(0, count, SPREAD_ROWS):
            rows = min(SPREAD_ROWS, count - start)
            with self.connection.cursor() as cursor:
                cursor.execute(statement, (new_id()[:24], priority, PAYLOAD, delay, rows))

    def notify(self, n: int) -> None:
        """Insert; nobody can ring here."""
        with self.connection.cursor() as cursor:
            cursor.execute(INSERT, (new_id(), "bench", "note", 100, f'{{"n": {n}}}'))

    def claim(self) -> Rows:
        """Find and lock, then update, in one transaction."""
        self.connection.begin()
        with self.connection.cursor() as cursor:
            cursor.execute(SELECT)
            rows: Rows = cursor.fetchall()
            if rows:
                cursor.execute(UPDATE + _listed([job_id for job_id, _ in rows]))
        self.connection.commit()
        return rows

    def delete(self, ids: list[str]) -> None:
        """All in one statement."""
        self._send(DELETE + _listed(ids))

    def wait(self) -> None:
        """Nobody rings: look again soon."""
        time.sleep(PAUSE)

    def _send(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)


def _listed(ids: list[str]) -> str:
    return "('" + "','".join(ids) + "')"


if __name__ == "__main__":
    be_child(MysqlReference)
