"""What all sessions share: a block is sent part by part; a caller's transaction is left alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Request
from dibs.store.statement import Copy, Part, Rows


class CallerSession(ABC):
    """A caller's connection: statements join its transaction."""

    bulk = False

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    def execute(self, request: Request) -> Rows:
        """Run a statement or a bulk load; answer its rows."""
        if isinstance(request, Copy):
            self.load(request)
            return []
        block = self.dialect.blocks[request.name]
        params = self.dialect.bind(block, request.params)
        if len(block.parts) == 1:
            return self.send(block.parts[0], params)
        rows: Any = None
        parts = block.sent(params, self.dialect.array)
        try:
            while True:
                rows = self.send(*parts.send(rows))
        except StopIteration as done:
            answer: Rows = done.value
            return answer

    @abstractmethod
    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text and return its rows."""

    def load(self, _copy: Copy) -> None:
        """Load in bulk, where the driver can (`bulk`)."""
        raise TypeError("this connection has no bulk load")

    def begin(self) -> None:  # noqa: B027 - nothing to do is the point
        """The transaction is the caller's."""

    def commit(self) -> None:  # noqa: B027 - nothing to do is the point
        """The transaction is the caller's."""

    def rollback(self) -> None:  # noqa: B027 - nothing to do is the point
        """The transaction is the caller's."""


class AsyncCallerSession(AsyncSession):
    """A caller's asynchronous connection: statements join its transaction."""

    bulk = False

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    async def execute(self, request: Request) -> Rows:
        """Run a statement or a bulk load; answer its rows."""
        if isinstance(request, Copy):
            await self.load(request)
            return []
        block = self.dialect.blocks[request.name]
        rows: Any = None
        parts = block.sent(self.dialect.bind(block, request.params), self.dialect.array)
        try:
            while True:
                rows = await self.send(*parts.send(rows))
        except StopIteration as done:
            answer: Rows = done.value
            return answer

    @abstractmethod
    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text and return its rows."""

    async def load(self, _copy: Copy) -> None:
        """Load in bulk, where the driver can (`bulk`)."""
        raise TypeError("this connection has no bulk load")


class OwnTransactions(CallerSession):
    """A connection of dibs' own, in autocommit mode: transactions are begun when asked for, or needed."""

    _open = False

    def execute(self, request: Request) -> Rows:
        """Run a request, in a transaction of its own if it needs one and none is open."""
        if self._open or not self._needs_transaction(request):
            return super().execute(request)
        self.begin()
        try:
            rows = super().execute(request)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        return rows

    def _needs_transaction(self, request: Request) -> bool:
        """Several parts take effect together or not at all."""
        return not isinstance(request, Copy) and len(self.dialect.blocks[request.name].parts) > 1
