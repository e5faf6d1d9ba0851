"""SQLAlchemy: connections and sessions of callers, sync and async, whatever driver is below."""

from __future__ import annotations

from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Request
from dibs.store.statement import Copy, Rows, Style


def _prepared(dialect: Dialect, style: Style, request: Request) -> tuple[str, Any]:
    """The text and parameters in the style of the driver below SQLAlchemy."""
    if isinstance(request, Copy):
        raise TypeError("a bulk load cannot run through SQLAlchemy")
    block = dialect.blocks[request.name]
    text, order = block.compiled(style)
    params = dialect.bind(block, request.params)
    if style in ("pyformat", "named"):
        return text, params
    return text, tuple(params[name] for name in order)


class SqlAlchemySession:
    """A caller's SQLAlchemy Connection: statements join its transaction."""

    bulk = False

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    def execute(self, request: Request) -> Rows:
        """Run one statement."""
        text, params = _prepared(self.dialect, self.connection.dialect.paramstyle, request)
        result = self.connection.exec_driver_sql(text, params)
        return [tuple(row) for row in result] if result.returns_rows else []

    def begin(self) -> None:
        """The transaction is the caller's."""

    def commit(self) -> None:
        """The transaction is the caller's."""

    def rollback(self) -> None:
        """The transaction is the caller's."""


class AsyncSqlAlchemySession(AsyncSession):
    """A caller's SQLAlchemy AsyncConnection or AsyncSession."""

    bulk = False

    def __init__(self, given: Any, dialect: Dialect) -> None:
        self.given = given
        self.dialect = dialect

    async def execute(self, request: Request) -> Rows:
        """Run one statement."""
        ours = hasattr(self.given, "exec_driver_sql")
        connection = self.given if ours else await self.given.connection()
        text, params = _prepared(self.dialect, connection.dialect.paramstyle, request)
        result = await connection.exec_driver_sql(text, params)
        return [tuple(row) for row in result] if result.returns_rows else []
