"""psycopg 3: dibs' own driver for PostgreSQL, and callers' connections, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.store.runner import Request
from dibs.store.sessions.base import AsyncCallerSession, CallerSession, Manners, OwnTransactions
from dibs.store.statement import Copy, Part, Rows

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
    from psycopg.pq.abc import PGresult

    from dibs.store.dialect import Dialect

_IN_TRANSACTION = (1, 2, 3)
"""libpq's PQTRANS_ACTIVE, _INTRANS and _INERROR."""
_COMMAND_OK = 1
"""libpq's PGRES_COMMAND_OK."""


def _tuple_row(_cursor: Any) -> Any:
    """Rows as tuples whatever row factory the connection has."""
    return tuple


class _PsycopgManners(Manners):
    """What connections of both kinds tell."""

    bulk = True

    def autocommits(self) -> bool:
        """As the connection was made."""
        return bool(self.connection.autocommit)

    def in_transaction(self) -> bool:
        """As the server said last."""
        return self.connection.pgconn.transaction_status in _IN_TRANSACTION

    def place(self) -> str | None:
        """As it was asked for when the connection was made."""
        return str(self.connection.info.dbname)


class PsycopgSession(_PsycopgManners, CallerSession):
    """A caller's psycopg connection."""

    connection: Connection[Any]

    def cursor(self) -> Cursor[Any]:
        """A plain cursor, whatever kind of cursor the connection makes: dibs' parameters are written for this one."""
        from psycopg import Cursor

        return Cursor(self.connection, row_factory=_tuple_row)

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, _ = part.compiled("pyformat")
        with self.cursor() as cursor:
            cursor.execute(text.encode(), params, prepare=False if part.fresh else None)
            return cursor.fetchall() if part.answers else []

    def load(self, copy: Copy) -> None:
        """COPY."""
        with self.cursor() as cursor, cursor.copy(self.dialect.blocks[copy.name].text.encode()) as stream:
            for chunk in copy.chunks:
                stream.write(chunk)

    def command(self, text: str) -> None:
        """Run it."""
        with self.cursor() as cursor:
            cursor.execute(text.encode())


class OwnPsycopgSession(OwnTransactions, PsycopgSession):
    """A connection of dibs' own, in autocommit mode.

    `explicit` is set where the server's default is not READ COMMITTED: then each statement brings its own BEGIN,
    since a claim at a higher level fails when a row has changed after its snapshot.
    """

    explicit = False

    def __init__(self, connection: Connection[Any], dialect: Dialect) -> None:
        super().__init__(connection, dialect)
        self._cursor = self.cursor()
        self._pgconn = connection.pgconn
        self._prepares = connection.prepare_threshold is not None
        self._prepared: dict[str, bytes] = {}

    def cursor(self) -> Cursor[Any]:
        """The cursors of dibs' own connections are plain."""
        return self.connection.cursor(row_factory=_tuple_row)

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text, always on one cursor: making one takes a third as long as sending a statement."""
        if self._prepares and not (part.answers or part.fresh):
            self._tell(part, params)
            return []
        text, _ = part.compiled("pyformat")
        self._cursor.execute(text.encode(), params, prepare=False if part.fresh else None)
        return self._cursor.fetchall() if part.answers else []

    def command(self, text: str) -> None:
        """Run it, past psycopg, which would forget all that is prepared whenever it saw a rollback."""
        self._check(self._pgconn.exec_(text.encode()))

    def _tell(self, part: Part, params: dict[str, Any]) -> None:
        """Send what answers nothing, by libpq's own call: without a cursor, half of the client's time is saved.

        The types of the parameters are what the statement makes of them, as with every other driver.
        """
        text, order = part.compiled("numeric_dollar")
        name = self._prepared.get(text)
        if name is None:
            name = f"dibs_{len(self._prepared)}".encode()
            self._check(self._pgconn.prepare(name, text.encode()))
            self._prepared[text] = name
        values: Any = [None if (value := params[key]) is None else str(value).encode() for key in order]
        self._check(self._pgconn.exec_prepared(name, values))

    def _check(self, result: PGresult) -> None:
        if result.status == _COMMAND_OK:
            return
        from psycopg import OperationalError, errors

        error = errors.error_from_result(result)
        raise error if error.sqlstate else OperationalError(str(error))  # without a state it is libpq that complains

    def splits(self, request: Request) -> bool:
        """Where the default will not do, a statement must not be sent without its BEGIN."""
        return (self.explicit and not self.opened) or super().splits(request)

    @property
    def broken(self) -> bool:
        """Whether the connection is of no more use."""
        return self.connection.closed or self.connection.broken

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class AsyncPsycopgSession(_PsycopgManners, AsyncCallerSession):
    """A caller's psycopg AsyncConnection."""

    connection: AsyncConnection[Any]

    def cursor(self) -> AsyncCursor[Any]:
        """A plain cursor, whatever kind of cursor the connection makes."""
        from psycopg import AsyncCursor

        return AsyncCursor(self.connection, row_factory=_tuple_row)

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, _ = part.compiled("pyformat")
        async with self.cursor() as cursor:
            await cursor.execute(text.encode(), params, prepare=False if part.fresh else None)
            return await cursor.fetchall() if part.answers else []

    async def load(self, copy: Copy) -> None:
        """COPY."""
        text = self.dialect.blocks[copy.name].text.encode()
        async with self.cursor() as cursor, cursor.copy(text) as stream:
            for chunk in copy.chunks:
                await stream.write(chunk)

    async def command(self, text: str) -> None:
        """Run it."""
        async with self.cursor() as cursor:
            await cursor.execute(text.encode())
