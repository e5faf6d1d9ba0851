"""What all sessions share: a block is sent part by part, and what belongs together is one transaction.

That transaction is the caller's, and the caller's alone to end. A connection in autocommit mode may have none: then
dibs begins one for what belongs together, and ends it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Request
from dibs.store.statement import Copy, Part, Rows


class Manners:
    """What a session of either kind knows of transactions; no question here waits for the database."""

    bulk = False
    opened = False
    """Whether dibs has begun a transaction that it must end."""

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    def autocommits(self) -> bool:
        """Whether a statement outside a transaction commits by itself, instead of beginning one."""
        return False

    def in_transaction(self) -> bool:
        """Whether a transaction is open, begun by whomever."""
        return True

    def alone(self) -> bool:
        """Whether the next statement would commit alone: what belongs together must be held together by dibs."""
        return self.autocommits() and not self.in_transaction()

    def place(self) -> str | None:
        """The name or file of the database, as far as the connection tells without asking a server."""
        return None

    def splits(self, request: Request) -> bool:
        """Whether a request has several parts, which would commit one by one if nothing holds them together."""
        return not self.opened and not isinstance(request, Copy) and len(self.dialect.blocks[request.name].parts) > 1


class CallerSession(Manners, ABC):
    """A caller's connection: statements join its transaction, if it has one."""

    def execute(self, request: Request) -> Rows:
        """Run a statement or a bulk load; answer its rows."""
        if not self.splits(request):
            return self.sent(request)
        self.begin()
        try:
            rows = self.sent(request)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        return rows

    def sent(self, request: Request) -> Rows:
        """Send a request, whatever transaction there is."""
        if isinstance(request, Copy):
            self.load(request)
            return []
        block = self.dialect.blocks[request.name]
        params = self.dialect.bind(block, request.params)
        if block.plain:
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

    @abstractmethod
    def command(self, text: str) -> None:
        """Run SQL without parameters and rows: what begins and ends transactions."""

    def load(self, _copy: Copy) -> None:
        """Load in bulk, where the driver can (`bulk`)."""
        raise TypeError("this connection has no bulk load")

    def begin(self) -> None:
        """Start a transaction, unless statements join one of the caller's anyway."""
        if self.alone():
            self.command(self.dialect.begin)
            self.opened = True

    def commit(self) -> None:
        """Commit what `begin` started; a transaction of the caller's is left alone."""
        if self.opened:
            self.command("commit")
            self.opened = False

    def rollback(self) -> None:
        """Undo what `begin` started, if it has not ended by itself; a transaction of the caller's is left alone."""
        opened, self.opened = self.opened, False
        if opened and self.in_transaction():
            self.command("rollback")


class AsyncCallerSession(Manners, AsyncSession):
    """A caller's asynchronous connection: statements join its transaction, if it has one."""

    async def execute(self, request: Request) -> Rows:
        """Run a statement or a bulk load; answer its rows."""
        if not self.splits(request):
            return await self.sent(request)
        await self.begin()
        try:
            rows = await self.sent(request)
            await self.commit()
        except BaseException:
            await self.rollback()
            raise
        return rows

    async def sent(self, request: Request) -> Rows:
        """Send a request, whatever transaction there is."""
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

    @abstractmethod
    async def command(self, text: str) -> None:
        """Run SQL without parameters and rows: what begins and ends transactions."""

    async def load(self, _copy: Copy) -> None:
        """Load in bulk, where the driver can (`bulk`)."""
        raise TypeError("this connection has no bulk load")

    async def begin(self) -> None:
        """Start a transaction, unless statements join one of the caller's anyway."""
        if self.alone():
            self.opened = True  # before it is: a task that is cancelled here may have begun it
            try:
                await self.command(self.dialect.begin)
            except BaseException:
                await self.rollback()
                raise

    async def commit(self) -> None:
        """Commit what `begin` started; a transaction of the caller's is left alone."""
        if self.opened:
            await self.command("commit")
            self.opened = False

    async def rollback(self) -> None:
        """Undo what `begin` started, if it has not ended by itself; a transaction of the caller's is left alone."""
        if self.opened:
            self.opened = False
            await self.catch_up()
            if self.in_transaction():
                await self.command("rollback")

    async def aplace(self) -> str | None:
        """`place`, where that has to be awaited."""
        return self.place()

    async def catch_up(self) -> None:
        """Wait until all that was sent is answered: a task that is cancelled does not wait for it."""


class OwnTransactions(CallerSession):
    """A connection of dibs' own, in autocommit mode: its transactions are all dibs'."""

    def alone(self) -> bool:
        """Nobody else begins a transaction here."""
        return not self.opened
