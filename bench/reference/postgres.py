"""The reference on PostgreSQL: plain statements over psycopg, claim 100, then delete the 100.

As fast as this shape goes: prepared statements, ids as one array literal, the payload decoded by msgspec, one
plain function call per job.
"""

from __future__ import annotations

import psycopg

from bench.reference.loop import BATCH, PAYLOAD, Connection, Reference, Rows, be_child
from dibs.model.identity import new_id, new_ids

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
COPY = "copy {table} (id, queue, task, priority, payload) from stdin"
SPREAD = """
insert into {table} (id, queue, task, priority, payload, available_at)
select dibs.new_id(), 'bench', 'noop', %s, cast(%s as text)::jsonb, clock_timestamp() + %s * interval '1 second'
  from generate_series(1, %s)
"""
NOTIFYING = """
with new as (insert into reference.job (id, queue, task, payload)
             values (cast(cast(%s as text) as uuid), 'bench', 'note', cast(cast(%s as text) as jsonb)) returning id)
select pg_notify('reference', '') from new
"""


class PostgresReference(Reference):
    """psycopg."""

    driver = "psycopg"
    table = "reference.job"
    module = "bench.reference.postgres"
    in_bulk = "COPY"
    hears = "LISTEN"
    tunable = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._cursor = connection.cursor()
        self._listens = False

    @classmethod
    def connect(cls, url: str) -> Connection:
        """A connection in autocommit mode."""
        return psycopg.connect(url, autocommit=True, application_name="reference")

    def create(self, tuned: bool = False) -> None:
        """An empty table, made anew."""
        self.connection.execute(SCHEMA)
        if tuned:
            self.connection.execute(HOT)

    def insert(self, count: int) -> None:
        """One prepared statement, ids made beforehand."""
        with self.connection.cursor() as cursor:
            for job_id in new_ids(count):
                cursor.execute(INSERT, (job_id, "bench", "noop", 100, PAYLOAD), prepare=True)

    def bulk(self, table: str, count: int) -> None:
        """Rows as COPY takes them, in one go."""
        lines = "".join([f"{job_id}\tbench\tnoop\t100\t{PAYLOAD}\n" for job_id in new_ids(count)])
        with self.connection.cursor() as cursor, cursor.copy(COPY.format(table=table)) as load:
            load.write(lines)

    def spread(self, table: str, count: int, priority: int = 100, delay: int = 0) -> None:
        """One statement."""
        self.connection.execute(SPREAD.format(table=table), (priority, PAYLOAD, delay, count))

    def notify(self, n: int) -> None:
        """Insert and ring in one statement."""
        self.connection.execute(NOTIFYING, (new_id(), f'{{"n": {n}}}'), prepare=True)

    def claim(self) -> Rows:
        """Find, lock, update and read in one statement."""
        rows: Rows = self._cursor.execute(CLAIM, ("bench", "reference"), prepare=True).fetchall()
        return rows

    def delete(self, ids: list[str]) -> None:
        """All in one statement."""
        self._cursor.execute(DELETE, ("{" + ",".join(ids) + "}",), prepare=True)

    def wait(self) -> None:
        """For the bell. What came before the first LISTEN is found by looking once more."""
        if not self._listens:
            self._listens = True
            self.connection.execute("listen reference")
        else:
            any(True for _ in self.connection.notifies(timeout=1.0, stop_after=1))


if __name__ == "__main__":
    be_child(PostgresReference)
