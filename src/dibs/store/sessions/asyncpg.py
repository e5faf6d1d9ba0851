"""asyncpg: connections of callers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from dibs.store.sessions.base import AsyncCallerSession
from dibs.store.statement import Copy, Part, Rows


class AsyncpgSession(AsyncCallerSession):
    """A caller's asyncpg connection."""

    bulk = True

    def autocommits(self) -> bool:
        """A connection of asyncpg begins nothing by itself."""
        return True

    def in_transaction(self) -> bool:
        """As the server said last."""
        return bool(self.connection.is_in_transaction())

    def place(self) -> str | None:
        """As it was asked for when the connection was made; asyncpg keeps that to itself, and may stop keeping it."""
        asked = getattr(self.connection, "_params", None)
        return getattr(asked, "database", None)

    async def rollback(self) -> None:
        """Undo what `begin` started. After a cancellation nobody knows whether it has: that costs a notice at most."""
        opened, self.opened = self.opened, False
        if opened and not self.connection.is_closed():
            await self.command("rollback")

    async def command(self, text: str) -> None:
        """Run it."""
        await self.connection.execute(text)

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, order = part.compiled("numeric_dollar")
        rows = await self.connection.fetch(text, *(params[name] for name in order))
        return [tuple(row) for row in rows]

    async def load(self, copy: Copy) -> None:
        """COPY."""
        await self.connection.copy_to_table(
            "job", schema_name="dibs", columns=copy.columns, source=_encoded(copy.chunks)
        )


async def _encoded(chunks: Iterable[str]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk.encode()
