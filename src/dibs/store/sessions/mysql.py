"""MySQL and MariaDB: dibs' own connections by PyMySQL, and callers' by PyMySQL, mysqlclient, aiomysql and asyncmy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dibs.errors import InvalidOption
from dibs.store.mysql_errors import ENDED, code
from dibs.store.runner import Request
from dibs.store.sessions.base import AsyncCallerSession, CallerSession, Manners, OwnTransactions
from dibs.store.statement import Copy, Part, Rows

if TYPE_CHECKING:
    from pymysql import Connection

    from dibs.store.dialect import Dialect

_IN_TRANSACTION = 1
"""A bit of what the server says of itself with each answer."""
_PLACE = Part("select database()")


class _MysqlManners(Manners):
    """What connections of both kinds tell; the four drivers are of one descent and answer to the same names."""

    def autocommits(self) -> bool:
        """As the server said last."""
        return bool(self.connection.get_autocommit())

    def in_transaction(self) -> bool:
        """As the server said last; what was open on a connection that has ended is undone."""
        return not self.gone() and bool((self.connection.server_status or 0) & _IN_TRANSACTION)

    def gone(self) -> bool:
        """Whether the connection has ended: aiomysql and asyncmy end it when a task that used it is cancelled."""
        for name in ("open", "connected"):  # of PyMySQL, of asyncmy
            if hasattr(self.connection, name):
                return not getattr(self.connection, name)
        return bool(self.connection.closed)

    def plain(self) -> Any:
        """The driver's plain kind of cursor, whatever kind the connection makes."""
        modules = (kind.__module__.partition(".")[0] for kind in type(self.connection).__mro__)
        driver = next(name for name in modules if f"{name}.cursors" in sys.modules)
        return sys.modules[f"{driver}.cursors"].Cursor

    def written(self, part: Part, params: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
        """The text and its values; a text that the connection's character set would change is refused."""
        text, order = part.compiled("format")
        values = tuple(params[name] for name in order)
        charset = self.connection.character_set_name()
        if charset != "utf8mb4" and any(isinstance(value, str) and not value.isascii() for value in values):
            raise InvalidOption(
                f"The connection given speaks {charset}, which would change letters of this job.",
                'Connect with charset="utf8mb4".',
            )
        return text, values


class MysqlSession(_MysqlManners, CallerSession):
    """A caller's PyMySQL connection."""

    def place(self) -> str | None:
        """As the server says: a connection may have moved since it was made (USE)."""
        place: str | None = self.send(_PLACE, {})[0][0]
        return place

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        with self.connection.cursor(self.plain()) as cursor:
            cursor.execute(*self.written(part, params))
            return _as_text(cursor.fetchall()) if part.answers else []

    def command(self, text: str) -> None:
        """Run it."""
        with self.connection.cursor(self.plain()) as cursor:
            cursor.execute(text)


class MysqlclientSession(MysqlSession):
    """A caller's mysqlclient connection (MySQLdb), which keeps to itself whether a transaction is open."""

    def in_transaction(self) -> bool:
        """A savepoint is forgotten at once where no transaction is open: it cannot be released then."""
        self.command("savepoint dibs_is_asking")
        try:
            self.command("release savepoint dibs_is_asking")
        except Exception as error:
            if code(error) != 1305:
                raise
            return False
        return True


class OwnMysqlSession(OwnTransactions, MysqlSession):
    """A connection of dibs' own, in autocommit mode, by PyMySQL."""

    bulk = True
    connection: Connection[Any]

    def __init__(self, connection: Connection[Any], dialect: Dialect) -> None:
        super().__init__(connection, dialect)
        self._cursor = connection.cursor()
        self._ended = False

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text, always on one cursor."""
        text, order = part.compiled("format")
        self.command(text % tuple(_literal(params[name]) for name in order))
        return list(self._cursor.fetchall()) if part.answers else []

    def splits(self, request: Request) -> bool:
        """A bulk load comes in pieces, too."""
        return (isinstance(request, Copy) and not self.opened) or super().splits(request)

    def load(self, copy: Copy) -> None:
        """Rows of VALUES, a statement for each piece."""
        begun = self.dialect.blocks[copy.name].text
        for chunk in copy.chunks:
            self.command(f"{begun} {chunk}")

    def command(self, text: str) -> None:
        """Run it. A server that ends a connection says so in its last answer; nothing more comes after it."""
        try:
            self._cursor.execute(text)
        except Exception as error:
            self._ended = self._ended or code(error) in ENDED
            raise

    def gone(self) -> bool:
        """Whether it has ended, also if the driver has not noticed yet."""
        return self._ended or super().gone()

    @property
    def broken(self) -> bool:
        """Whether the connection is of no more use."""
        return self.gone()

    def close(self) -> None:
        """Close the connection."""
        if self.connection.open:
            self.connection.close()


class AsyncMysqlSession(_MysqlManners, AsyncCallerSession):
    """A caller's aiomysql or asyncmy connection."""

    async def aplace(self) -> str | None:
        """As the server says: a connection may have moved since it was made (USE)."""
        place: str | None = (await self.send(_PLACE, {}))[0][0]
        return place

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        async with self.connection.cursor(self.plain()) as cursor:
            await cursor.execute(*self.written(part, params))
            return _as_text(await cursor.fetchall()) if part.answers else []

    async def command(self, text: str) -> None:
        """Run it."""
        async with self.connection.cursor(self.plain()) as cursor:
            await cursor.execute(text)


def _as_text(rows: Any) -> Rows:
    """Rows as dibs knows them, also of a connection that reads text as bytes."""
    return [tuple(value.decode() if isinstance(value, bytes) else value for value in row) for row in rows]


def _literal(value: Any) -> str:
    """A value as SQL, on a connection whose modes dibs has set. PyMySQL goes letter by letter, ten times as slow."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "null" if value is None else str(value)
