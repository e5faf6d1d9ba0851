"""PostgreSQL, 14 to 18."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from bench.grounds.database import Database
from bench.grounds.ground import Ground
from bench.reference.loop import Connection
from bench.reference.postgres import PostgresReference
from tests.servers import PostgresServer

STATEMENTS = "select xact_commit + xact_rollback from pg_stat_database where datname = %s"


class PostgresDatabase(Database):
    """dibs has a schema of its own."""

    prefix = "dibs."
    epoch = "extract(epoch from {})::float8"

    def settle_down(self, *tables: str, vacuum: bool = False) -> None:
        """Statistics, a checkpoint, and if asked for no dead rows."""
        for table in tables:
            self.execute(f"{'vacuum (analyze)' if vacuum else 'analyze'} {table}")
        self.execute("checkpoint")

    @contextmanager
    def old_snapshot(self) -> Iterator[None]:
        """A transaction that has looked at something and does not end."""
        with closing(self.reference.connect(self.url)) as other:
            other.execute("begin isolation level repeatable read")
            other.execute("select 1 from pg_class limit 1")
            yield

    def statements(self) -> int:
        """Transactions of this database, asked from another one."""
        with closing(self.reference.connect(self.server.url())) as elsewhere:
            (count,) = elsewhere.execute(STATEMENTS, (self.connection.info.dbname,)).fetchone()
            return int(count)


class PostgresGround(Ground):
    """One major version."""

    kind = "postgres"
    family = "PostgreSQL"
    reference = PostgresReference
    databases = PostgresDatabase

    def __init__(self, major: int) -> None:
        self.version = str(major)

    def server(self) -> PostgresServer:
        """With fsync, full_page_writes and synchronous_commit on."""
        return PostgresServer(int(self.version), durable=True, shared_buffers="1GB")

    def drop(self, admin: Connection, name: str) -> None:
        """Whoever is connected is thrown out."""
        admin.execute(f"drop database if exists {name} with (force)")
