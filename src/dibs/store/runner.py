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
    """An asynchronous connection of the caller. Its transactions are the caller's."""

    bulk: bool

    @abstractmethod
    async def execute(self, request: Request) -> Rows:
        """Run a statement and return its rows."""


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
            reply = [] if request is ATOMIC else await session.execute(request)
    except StopIteration as done:
        answer: T = done.value
        return answer
    finally:
        operation.close()
