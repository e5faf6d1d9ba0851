"""SQLAlchemy: connections and sessions of callers, sync and async, whatever driver is below."""

from __future__ import annotations

from typing import Any

from dibs.store.sessions.base import AsyncCallerSession, CallerSession
from dibs.store.statement import Part, Rows, Style


def _written(part: Part, style: Style, params: dict[str, Any]) -> tuple[str, Any]:
    """The text and parameters in the style of the driver below SQLAlchemy."""
    text, order = part.compiled(style)
    if style in ("pyformat", "named"):
        return text, params
    return text, tuple(params[name] for name in order)


class SqlAlchemySession(CallerSession):
    """A caller's SQLAlchemy Connection."""

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, values = _written(part, self.connection.dialect.paramstyle, params)
        result = self.connection.exec_driver_sql(text, values)
        return [tuple(row) for row in result] if result.returns_rows else []


class AsyncSqlAlchemySession(AsyncCallerSession):
    """A caller's SQLAlchemy AsyncConnection or AsyncSession."""

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        ours = hasattr(self.connection, "exec_driver_sql")
        connection = self.connection if ours else await self.connection.connection()
        text, values = _written(part, connection.dialect.paramstyle, params)
        result = await connection.exec_driver_sql(text, values)
        return [tuple(row) for row in result] if result.returns_rows else []
