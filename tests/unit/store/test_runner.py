"""An operation is driven to its answer: whole or not at all, waiting or awaiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dibs.errors import Duplicate
from dibs.store.runner import AsyncSession, Operation, Request, arun, run
from dibs.store.statement import ATOMIC, Copy, Rows, sql


class Broken(Exception):
    """What a driver may raise."""


class FakeSession:
    """Writes down what it is asked for; fails where it is told to."""

    bulk = False

    def __init__(self, fail_at: str = "") -> None:
        self.fail_at = fail_at
        self.said: list[str] = []

    def _say(self, what: str) -> None:
        self.said.append(what)
        if what == self.fail_at:
            raise Broken(what)

    def execute(self, request: Request) -> Rows:
        """Answers each statement with its name."""
        self._say(request.name)
        return [(request.name,)]

    def begin(self) -> None:
        """Say so."""
        self._say("begin")

    def commit(self) -> None:
        """Say so."""
        self._say("commit")

    def rollback(self) -> None:
        """Say so."""
        self._say("rollback")


class FakeAsyncSession(AsyncSession):
    """The same, to be awaited."""

    bulk = False

    def __init__(self, fail_at: str = "") -> None:
        self.inner = FakeSession(fail_at)
        self.arrived: asyncio.Event | None = None

    async def execute(self, request: Request) -> Rows:
        """Answers each statement with its name; waits for ever if somebody wants to know that it has arrived."""
        rows = self.inner.execute(request)
        if self.arrived is not None:
            self.arrived.set()
            await asyncio.get_running_loop().create_future()
        return rows


def single() -> Operation[str]:
    """One statement."""
    rows = yield sql("one")
    return str(rows[0][0])


def atomic(closed: list[str] | None = None) -> Operation[list[Any]]:
    """Three statements that belong together."""
    try:
        first: Any = yield ATOMIC
        second = yield sql("two")
        third = yield Copy("three", ["x"], ("a",))
        return [first, second, third]
    finally:
        if closed is not None:
            closed.append("closed")


def nested() -> Operation[list[Any]]:
    """An operation within an operation, each of which wants to be atomic."""
    yield ATOMIC
    return (yield from atomic())


def refusing() -> Operation[None]:
    """An operation that changes its mind."""
    yield ATOMIC
    yield sql("one")
    raise Duplicate("taken.")


def silent() -> Operation[int]:
    """An operation with nothing to ask."""
    yield from ()
    return 7


def test_a_single_statement_needs_no_transaction() -> None:
    session = FakeSession()
    assert run(session, single()) == "one"
    assert session.said == ["one"]


def test_statements_that_belong_together_are_one_transaction() -> None:
    session = FakeSession()
    assert run(session, atomic()) == [[], [("two",)], [("three",)]]
    assert session.said == ["begin", "two", "three", "commit"]


def test_an_operation_inside_another_joins_its_transaction() -> None:
    session = FakeSession()
    run(session, nested())
    assert session.said == ["begin", "two", "three", "commit"]


def test_an_operation_that_asks_nothing_just_answers() -> None:
    session = FakeSession()
    assert run(session, silent()) == 7
    assert session.said == []


@pytest.mark.parametrize(
    ("fail_at", "said"),
    [
        ("begin", ["begin", "closed"]),
        ("two", ["begin", "two", "closed", "rollback"]),
        ("three", ["begin", "two", "three", "closed", "rollback"]),
        ("commit", ["begin", "two", "three", "closed", "commit", "rollback"]),
    ],
)
def test_a_failure_anywhere_leaves_nothing_behind(fail_at: str, said: list[str]) -> None:
    session = FakeSession(fail_at)
    operation = atomic(session.said)  # kept here: nobody but the runner closes it
    with pytest.raises(Broken, match=fail_at):
        run(session, operation)
    assert session.said == said


def test_an_operation_that_refuses_is_rolled_back() -> None:
    session = FakeSession()
    with pytest.raises(Duplicate):
        run(session, refusing())
    assert session.said == ["begin", "one", "rollback"]


def test_a_single_statement_that_fails_has_nothing_to_roll_back() -> None:
    session = FakeSession("one")
    with pytest.raises(Broken):
        run(session, single())
    assert session.said == ["one"]


def test_an_interruption_is_rolled_back_like_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession()

    def interrupt(request: Request) -> Rows:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(session, atomic())
    assert session.said == ["begin", "rollback"]


def _awaited(session: FakeAsyncSession, operation: Operation[Any]) -> Any:
    return asyncio.run(arun(session, operation))


@pytest.mark.parametrize(
    ("make", "answer", "said"),
    [
        (single, "one", ["one"]),
        (atomic, [[], [("two",)], [("three",)]], ["two", "three"]),
        (nested, [[], [("two",)], [("three",)]], ["two", "three"]),
        (silent, 7, []),
    ],
)
def test_an_awaited_operation_leaves_transactions_to_their_owner(
    make: Callable[[], Operation[Any]], answer: Any, said: list[str]
) -> None:
    session = FakeAsyncSession()
    assert _awaited(session, make()) == answer
    assert session.inner.said == said


def test_an_awaited_operation_that_fails_is_closed() -> None:
    session, closed = FakeAsyncSession("two"), list[str]()
    operation = atomic(closed)
    with pytest.raises(Broken):
        _awaited(session, operation)
    assert closed == ["closed"]


def test_an_awaited_operation_that_is_cancelled_is_closed_at_once() -> None:
    closed: list[str] = []
    operation = atomic(closed)

    async def cancel_on_the_way() -> None:
        session = FakeAsyncSession()
        session.arrived = asyncio.Event()
        task = asyncio.create_task(arun(session, operation))
        await session.arrived.wait()
        assert closed == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_on_the_way())
    assert closed == ["closed"]
