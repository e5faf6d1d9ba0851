"""Drive an operation over a connection, waiting or awaiting. Operations know neither."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, Protocol, TypeAlias, TypeVar

from dibs.store.statement import ATOMIC, Copy, Rows, Statement

T = TypeVar("T")
Request: TypeAlias = Statement | Copy
Operation: TypeAlias = Generator[Request, Rows, T]
"""One thing that can happen to jobs: yields statements, is sent their rows, returns its answer."""


class Session(Protocol):
    """A connection, as far as operations need one."""

    bulk: bool

    def execute(self, request: Request) -> Rows:
        """Run a statement and return its rows."""
        ...

    def begin(self) -> None:
        """Start a transaction; does nothing on a connection whose transactions are its owner's."""
        ...

    def commit(self) -> None:
        """End the transaction that `begin` started."""
        ...

    def rollback(self) -> None:
        """Undo the transaction that `begin` started."""
        ...


class AsyncSession(ABC):
    """`Session` for a connection that must be awaited."""

    bulk: bool

    @abstractmethod
    async def execute(self, request: Request) -> Rows:
        """Run a statement and return its rows."""

    async def begin(self) -> None:  # noqa: B027 - nothing to do where all transactions are their owner's
        """Start a transaction; does nothing if one is open, or on a connection whose transactions are its owner's."""

    async def commit(self) -> None:  # noqa: B027
        """End the transaction that `begin` started, if it did."""

    async def rollback(self) -> None:  # noqa: B027
        """Undo the transaction that `begin` started."""


def run(session: Session, operation: Operation[T]) -> T:
    """Run an operation to its answer; an atomic one in a transaction."""
    reply: Any = None
    began = False
    try:
        while True:
            request = operation.send(reply)
            if request is ATOMIC:
                if not began:
                    session.begin()
                began, reply = True, []
            else:
                reply = session.execute(request)
    except StopIteration as done:
        answer: T = done.value
    except BaseException:
        operation.close()
        if began:
            session.rollback()
        raise
    if began:
        _commit(session)
    return answer


def _commit(session: Session) -> None:
    try:
        session.commit()
    except BaseException:
        session.rollback()
        raise


async def arun(session: AsyncSession, operation: Operation[T]) -> T:
    """`run` on a connection that must be awaited."""
    reply: Any = None
    try:
        while True:
            request = operation.send(reply)
            reply = await _sent(session, request)
    except StopIteration as done:
        answer: T = done.value
        await _end(session)
        return answer
    except BaseException:
        operation.close()
        await session.rollback()
        raise


async def _sent(session: AsyncSession, request: Request) -> Rows:
    if request is not ATOMIC:
        return await session.execute(request)
    await session.begin()
    return []


async def _end(session: AsyncSession) -> None:
    try:
        await session.commit()
    except BaseException:
        await session.rollback()
        raise
