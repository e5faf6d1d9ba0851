"""A database behind a transaction pooler, and callers who know that it is one."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg

from tests.servers import PgbouncerServer
from tests.support import notices
from tests.support.callers import Asyncpg, Psycopg, PsycopgAsync
from tests.support.databases import Postgres

ITS_OWN = frozenset({"application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"})
"""Settings that PgBouncer itself gives to a connection when it lends it to another client."""


def console_of(pooler: PgbouncerServer) -> psycopg.Connection[Any]:
    """Where the pooler is asked and told. It understands plain queries only: no transactions, nothing prepared."""
    return psycopg.connect(pooler.url("pgbouncer"), autocommit=True, prepare_threshold=None)


class Pooled(Postgres):
    """A database that the test reaches through the pooler; the harness itself looks at it directly."""

    def __init__(self, direct: Postgres, pooler: PgbouncerServer) -> None:
        super().__init__("pgbouncer", direct.url)
        self.database = direct.url.rpartition("/")[2]
        self.plain_url = pooler.url(self.database)
        self.url = f"{self.plain_url}?pooler=transaction"
        self._console = console_of(pooler)

    def connect(self) -> psycopg.Connection[Any]:
        return notices.watch(psycopg.connect(self.plain_url, autocommit=True, prepare_threshold=None))

    def connections(self) -> list[str]:
        """Clients of the pooler; its own connections to the server stay."""
        clients = self._console.execute("show clients")
        names = [column.name for column in clients.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in clients.fetchall()]
        return [str(row["application_name"]) for row in rows if row["database"] == self.database]

    def sessions(self, size: int) -> list[psycopg.Connection[Any]]:
        """As many connections as the pool has, each in a transaction, so that each is another of the server's."""
        return [psycopg.connect(self.plain_url, prepare_threshold=None) for _ in range(size)]

    def close(self) -> None:
        """Hang up."""
        self._console.close()
        self.control.close()


class PooledPsycopg(Psycopg):
    """psycopg.Connection as its manual wants it behind a pooler: without prepared statements."""

    database: Pooled

    def open(self) -> Any:
        return notices.watch(psycopg.connect(self.database.plain_url, prepare_threshold=None))


class PooledPsycopgAsync(PsycopgAsync):
    """psycopg.AsyncConnection, without prepared statements."""

    database: Pooled

    async def aopen(self) -> Any:
        url = self.database.plain_url
        return notices.watch(await psycopg.AsyncConnection.connect(url, prepare_threshold=None))


class PooledAsyncpg(Asyncpg):
    """asyncpg.Connection, without its cache of prepared statements."""

    database: Pooled

    async def connect(self) -> Any:
        return await asyncpg.connect(self.database.plain_url, statement_cache_size=0)


THROUGH_A_POOLER = (PooledPsycopg, PooledPsycopgAsync, PooledAsyncpg)
