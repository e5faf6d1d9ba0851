"""psycopg 3: dibs' own driver for PostgreSQL, and callers' connections, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.store.runner import Request
from dibs.store.sessions.base import AsyncCallerSession, CallerSession, OwnTransactions
from dibs.store.statement import Copy, Part, Rows

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection


def _tuple_row(_cursor: Any) -> Any:
    """Rows as tuples whatever row factory the connection has."""
    return tuple


class PsycopgSession(CallerSession):
    """A caller's psycopg connection."""

    bulk = True
    connection: Connection[Any]

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, _ = part.compiled("pyformat")
        with self.connection.cursor(row_factory=_tuple_row) as cursor:
            cursor.execute(text.encode(), params, prepare=False if part.fresh else None)
            return cursor.fetchall() if part.answers else []

    def load(self, copy: Copy) -> None:
        """COPY."""
        with self.connection.cursor() as cursor, cursor.copy(self.dialect.blocks[copy.name].text.encode()) as stream:
            for chunk in copy.chunks:
                stream.write(chunk)


class OwnPsycopgSession(OwnTransactions, PsycopgSession):
    """A connection of dibs' own, in autocommit mode.

    `explicit` is set where the server's default is not READ COMMITTED: then each statement brings its own BEGIN,
    since a claim at a higher level fails when a row has changed after its snapshot.
    """

    explicit = False

    def _needs_transaction(self, request: Request) -> bool:
        return self.explicit or super()._needs_transaction(request)

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


class AsyncPsycopgSession(AsyncCallerSession):
    """A caller's psycopg AsyncConnection."""

    bulk = True
    connection: AsyncConnection[Any]

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, _ = part.compiled("pyformat")
        async with self.connection.cursor(row_factory=_tuple_row) as cursor:
            await cursor.execute(text.encode(), params, prepare=False if part.fresh else None)
            return await cursor.fetchall() if part.answers else []

    async def load(self, copy: Copy) -> None:
        """COPY."""
        text = self.dialect.blocks[copy.name].text.encode()
        async with self.connection.cursor() as cursor, cursor.copy(text) as stream:
            for chunk in copy.chunks:
                await stream.write(chunk)
