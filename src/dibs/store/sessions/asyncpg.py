"""asyncpg: connections of callers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Request
from dibs.store.statement import Copy, Rows


class AsyncpgSession(AsyncSession):
    """A caller's asyncpg connection: statements join its transaction."""

    bulk = True

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    async def execute(self, request: Request) -> Rows:
        """Run one statement or bulk load."""
        block = self.dialect.blocks[request.name]
        if isinstance(request, Copy):
            await self.connection.copy_to_table(
                "job",
                schema_name="dibs",
                columns=request.columns,
                source=_encoded(request.chunks),
            )
            return []
        text, order = block.compiled("numeric_dollar")
        params = self.dialect.bind(block, request.params)
        rows = await self.connection.fetch(text, *(params[name] for name in order))
        return [tuple(row) for row in rows]


async def _encoded(chunks: Iterable[str]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk.encode()
