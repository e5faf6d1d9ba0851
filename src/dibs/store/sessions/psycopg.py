"""psycopg 3: dibs' own driver for PostgreSQL, and callers' connections, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Request
from dibs.store.statement import Copy, Rows

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection


def _tuple_row(_cursor: Any) -> Any:
    """Rows as tuples whatever row factory the connection has."""
    return tuple


class PsycopgSession:
    """A caller's psycopg connection: statements join its transaction."""

    bulk = True

    def __init__(self, connection: Connection[Any], dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    def execute(self, request: Request) -> Rows:
        """Run one statement or bulk load."""
        block = self.dialect.blocks[request.name]
        with self.connection.cursor(row_factory=_tuple_row) as cursor:
            if isinstance(request, Copy):
                with cursor.copy(block.text.encode()) as copy:
                    for chunk in request.chunks:
                        copy.write(chunk)
                return []
            params = self.dialect.bind(block, request.params)
            text, _ = block.compiled("pyformat")
            cursor.execute(text.encode(), params, prepare=False if block.fresh else None)
            return cursor.fetchall() if block.answers else []

    def begin(self) -> None:
        """The transaction is the caller's."""

    def commit(self) -> None:
        """The transaction is the caller's."""

    def rollback(self) -> None:
        """The transaction is the caller's."""


class OwnPsycopgSession(PsycopgSession):
    """A connection of dibs' own, in autocommit mode: one statement is one transaction unless `begin` says so.

    `explicit` is set where the server's default is not READ COMMITTED: then each statement brings its own BEGIN,
    since a claim at a higher level fails when a row has changed after its snapshot.
    """

    explicit = False
    _open = False

    def execute(self, request: Request) -> Rows:
        """Run one statement, in a transaction of the right level."""
        if not self.explicit or self._open:
            return super().execute(request)
        self.begin()
        try:
            rows = super().execute(request)
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return rows

    def begin(self) -> None:
        """Start a transaction, at READ COMMITTED whatever the server's default."""
        self.connection.execute("begin isolation level read committed")
        self._open = True

    def commit(self) -> None:
        """Commit it."""
        self.connection.execute("commit")
        self._open = False

    def rollback(self) -> None:
        """Roll it back, if there still is a connection."""
        self._open = False
        if not self.connection.closed:
            self.connection.execute("rollback")

    @property
    def broken(self) -> bool:
        """Whether the connection is of no more use."""
        return self.connection.closed or self.connection.broken

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class AsyncPsycopgSession(AsyncSession):
    """A caller's psycopg AsyncConnection: statements join its transaction."""

    bulk = True

    def __init__(self, connection: AsyncConnection[Any], dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    async def execute(self, request: Request) -> Rows:
        """Run one statement or bulk load."""
        block = self.dialect.blocks[request.name]
        async with self.connection.cursor(row_factory=_tuple_row) as cursor:
            if isinstance(request, Copy):
                async with cursor.copy(block.text.encode()) as copy:
                    for chunk in request.chunks:
                        await copy.write(chunk)
                return []
            params = self.dialect.bind(block, request.params)
            text, _ = block.compiled("pyformat")
            await cursor.execute(text.encode(), params, prepare=False if block.fresh else None)
            return await cursor.fetchall() if block.answers else []
