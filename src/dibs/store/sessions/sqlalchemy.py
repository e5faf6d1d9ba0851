"""SQLAlchemy: connections and sessions of callers, sync and async, whatever driver is below."""

from __future__ import annotations

from typing import Any

from dibs.errors import InvalidOption
from dibs.store.dialect import Dialect
from dibs.store.sessions.base import AsyncCallerSession, CallerSession, Manners
from dibs.store.sessions.recognise import recognise
from dibs.store.statement import Part, Rows, Style


def _written(part: Part, style: Style, params: dict[str, Any]) -> tuple[str, Any]:
    """The text and parameters in the style of the driver below SQLAlchemy."""
    text, order = part.compiled(style)
    if style in ("pyformat", "named"):
        return text, params
    return text, tuple(params[name] for name in order)


class _SqlAlchemyManners(Manners):
    """What connections of both kinds tell: what the driver below tells.

    SQLAlchemy itself counts a transaction also at the level AUTOCOMMIT, where the database has none. Below a driver
    that dibs does not know, it is taken at its word.
    """

    def pooled(self) -> Any:
        """The pool's proxy of the driver's connection."""
        return self.connection.connection

    def gone(self) -> bool:
        """Whether the driver's connection was closed."""
        return bool(self.connection.invalidated)

    def autocommits(self) -> bool:
        """By the isolation level AUTOCOMMIT."""
        mode = getattr(self.pooled().dbapi_connection, "autocommit", None)
        below = self._below()
        return below is not None and (mode if isinstance(mode, bool) else below.autocommits())

    def in_transaction(self) -> bool:
        """As the driver says; a connection that SQLAlchemy has given up, after a cancellation, is in none."""
        if self.gone():
            return False
        below = self._below()
        return below is None or below.in_transaction()

    def place(self) -> str | None:
        """As the driver says."""
        below = self._below()
        return None if below is None else below.place()

    def _below(self) -> Manners | None:
        try:
            found = recognise(self.pooled().driver_connection, self.dialect)
        except InvalidOption:
            return None
        return found if isinstance(found, Manners) else None


class SqlAlchemySession(_SqlAlchemyManners, CallerSession):
    """A caller's SQLAlchemy Connection."""

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, values = _written(part, self.connection.dialect.paramstyle, params)
        result = self.connection.exec_driver_sql(text, values)
        return [tuple(row) for row in result] if result.returns_rows else []

    def command(self, text: str) -> None:
        """Run it."""
        self.connection.exec_driver_sql(text)


class AsyncSqlAlchemySession(_SqlAlchemyManners, AsyncCallerSession):
    """A caller's SQLAlchemy AsyncConnection or AsyncSession."""

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        super().__init__(connection, dialect)
        self._reached = hasattr(connection, "exec_driver_sql")

    def pooled(self) -> Any:
        """The pool's proxy of the driver's connection."""
        return self.connection.sync_connection.connection

    async def reach(self) -> Any:
        """The connection, which a session has only when it is asked for it."""
        if not self._reached:
            self.connection, self._reached = await self.connection.connection(), True
            recognise(self.connection, self.dialect)  # only a connection knows whether it is MySQL or MariaDB
        return self.connection

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        connection = await self.reach()
        text, values = _written(part, connection.dialect.paramstyle, params)
        result = await connection.exec_driver_sql(text, values)
        return [tuple(row) for row in result] if result.returns_rows else []

    async def command(self, text: str) -> None:
        """Run it."""
        await self.connection.exec_driver_sql(text)

    async def aplace(self) -> str | None:
        """As the driver says, which must be connected for it."""
        await self.reach()
        below = self._below()
        return await below.aplace() if isinstance(below, AsyncCallerSession) else None

    async def begin(self) -> None:
        """Start a transaction, unless statements join one of the caller's anyway."""
        await self.reach()
        await super().begin()
