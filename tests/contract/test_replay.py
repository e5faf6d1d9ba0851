"""What is played again after a rollback ends the same; only transactions of dibs' own are played again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from dibs import Dibs
from dibs.errors import DatabaseError, DatabaseUnreachable
from dibs.store import access
from dibs.store.runner import Operation, Session, run
from tests.conftest import Make, server_url
from tests.contract.scenario import tell
from tests.support.clock import FakeClock
from tests.support.databases import Postgres
from tests.support.waiting import wait_until


class Unlucky(Exception):
    """A deadlock, as far as these tests need one."""


class Undone:
    """A session whose transaction is rolled back where it would be committed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.bulk = session.bulk

    def execute(self, request: Any) -> Any:
        return self._session.execute(request)

    def begin(self) -> None:
        """It has begun already."""

    def commit(self) -> None:
        """Never."""

    def rollback(self) -> None:
        """Later."""


@pytest.fixture
def unlucky(timed: Dibs, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Lets every operation succeed, be rolled back, and be played again; counts what was undone."""
    undone: Counter[str] = Counter()
    spared = [False]

    def play(session: Session, operation: Operation[Any]) -> Any:
        spared[0] = not spared[0]
        if not spared[0]:
            return run(session, operation)
        undone[operation.__name__] += 1
        session.begin()
        try:
            run(Undone(session), operation)
        finally:
            session.rollback()
        raise Unlucky

    monkeypatch.setattr(access, "run", play)
    monkeypatch.setattr(timed.store.dialect, "replayable", lambda error: isinstance(error, Unlucky))
    monkeypatch.setattr(access.time, "sleep", lambda _seconds: None)
    return undone


def test_every_verb_played_twice_after_a_rollback_ends_the_same(
    timed: Dibs, clock: FakeClock, request: pytest.FixtureRequest
) -> None:
    expected = tell(timed, "q1", clock)
    undone = request.getfixturevalue("unlucky")
    found = tell(timed, "q2", clock)
    assert [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]] == []
    assert {"enqueue", "enqueue_many", "claim", "settle", "beat", "take_back", "end_waiting", "requeue"} <= set(undone)
    assert {"run_now", "reschedule", "pause", "resume", "configure", "prune", "add_lanes"} <= set(undone)


@pytest.fixture
def on_server(postgres: Postgres, dibs_on: Make) -> Callable[[str], Dibs]:
    """Jobs whose connections find a deadlock soon or late: who finds it is its victim."""
    return lambda timeout: dibs_on(f"{postgres.url}?options=-c deadlock_timeout={timeout}")


def test_a_deadlock_of_our_own_transaction_is_played_again(
    postgres: Postgres, on_server: Callable[[str], Dibs]
) -> None:
    jobs = on_server("20ms")
    with closing(postgres.connect()) as other, ThreadPoolExecutor(1) as pool:
        other.execute("set deadlock_timeout = '1min'")
        other.execute("begin")
        held = jobs.enqueue("mail", unique="b", connection=other)
        ours = pool.submit(jobs.enqueue_many, [jobs.job("mail", unique="a"), jobs.job("mail", unique="b")])
        wait_until(lambda: postgres.waiting_for_a_lock() == 1, "our batch to wait for key b")
        jobs.enqueue("mail", unique="a", connection=other)  # now each waits for the other, until ours gives way
        other.execute("commit")
        handles = ours.result(timeout=30)
    assert [handle.created for handle in handles] == [False, False]
    assert handles[1].id == held.id
    assert postgres.count("job") == 2


def test_a_deadlock_of_the_callers_transaction_is_the_callers(
    postgres: Postgres, on_server: Callable[[str], Dibs]
) -> None:
    jobs = on_server("1min")
    with closing(postgres.connect()) as caller, ThreadPoolExecutor(1) as pool:
        caller.execute("set deadlock_timeout = '20ms'")
        caller.execute("begin")
        jobs.enqueue("mail", unique="b", connection=caller)
        ours = pool.submit(jobs.enqueue_many, [jobs.job("mail", unique="a"), jobs.job("mail", unique="b")])
        wait_until(lambda: postgres.waiting_for_a_lock() == 1, "our batch to wait for key b")
        with pytest.raises(psycopg.errors.DeadlockDetected):
            jobs.enqueue("mail", unique="a", connection=caller)
        assert caller.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        caller.execute("rollback")
        assert [handle.created for handle in ours.result(timeout=30)] == [True, True]
    assert postgres.count("job") == 2


def test_a_serialization_failure_of_the_callers_is_not_hidden(postgres: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(postgres.url)
    with closing(postgres.connect()) as caller:
        caller.execute("begin isolation level repeatable read")
        caller.execute("select 1")
        jobs.enqueue("mail", unique="a")
        with pytest.raises(psycopg.errors.SerializationFailure) as raised:
            jobs.enqueue("mail", unique="a", connection=caller)
        assert raised.value.__cause__ is not raised.value
    assert postgres.count("job") == 1


def test_trouble_without_end_is_raised_in_the_end(timed: Dibs, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def never(_session: Session, operation: Operation[Any]) -> Any:
        played.append(operation)
        operation.close()
        raise Unlucky

    timed.stats()
    monkeypatch.setattr(access, "run", never)
    monkeypatch.setattr(timed.store.dialect, "replayable", lambda error: isinstance(error, Unlucky))
    monkeypatch.setattr(access.time, "sleep", lambda _seconds: None)
    with pytest.raises(Unlucky):
        timed.stats()
    assert 3 <= len(played) <= 20


def test_a_server_that_ends_every_connection_is_unreachable_and_then_back(postgres: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(postgres.url)
    jobs.enqueue("mail")
    name = postgres.url.rpartition("/")[2]
    with closing(psycopg.connect(server_url(postgres.name), autocommit=True)) as admin:
        admin.execute(f"alter database {name} allow_connections off".encode())
        ours = f"datname = '{name}' and application_name = 'dibs'"
        admin.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {ours}".encode())
        try:
            with pytest.raises(DatabaseError):
                jobs.dequeue()
        finally:
            admin.execute(f"alter database {name} allow_connections on".encode())
    assert len(jobs.dequeue()) == 1


def test_a_file_that_is_locked_for_long_is_said_to_be(open_database: Any, dibs_on: Make, monkeypatch: Any) -> None:
    monkeypatch.setattr("dibs.store.sqlite.BUSY_SECONDS", 0.05)
    database = open_database("sqlite")
    jobs = dibs_on(database.url)
    jobs.enqueue("mail")
    played = []
    monkeypatch.setattr(access, "run", lambda *given: played.append(given) or run(*given))
    with closing(database.connect()) as writer:
        writer.execute("begin immediate")
        with pytest.raises(DatabaseUnreachable, match="write lock"):
            jobs.cancel(queue="default")
        assert len(played) == 2  # a page of ids is read, then the one attempt to write
        writer.execute("commit")
    assert jobs.enqueue("mail").created
