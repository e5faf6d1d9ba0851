"""What the database refuses, and what passes: outcomes are kept until they are stored."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from dibs import Backoff, Dibs
from dibs.errors import DatabaseError
from dibs.store.runner import Operation
from tests.support.databases import Database
from tests.worker.by_hand import by_hand


class Broken:
    """A line that answers with errors before it answers."""

    def __init__(self, line: Any, errors: list[Exception]) -> None:
        self._line = line
        self._errors = errors

    def call(self, make: Callable[[], Operation[Any]]) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        return self._line.call(make)

    def close(self) -> None:
        self._line.close()


def _full() -> Exception:
    return sqlite3.OperationalError("database or disk is full")


def _locked() -> Exception:
    error = DatabaseError("Somebody holds the table.", "Wait.")
    error.__cause__ = sqlite3.OperationalError("database is locked")
    return error


@pytest.mark.parametrize("trouble", [_full, _locked])
def test_an_outcome_waits_until_the_database_takes_it(jobs: Dibs, trouble: Callable[[], Exception]) -> None:
    ran: list[int] = []

    @jobs.task
    def work(n: int) -> int:
        ran.append(n)
        return n

    handle = work.enqueue(7)
    with by_hand(jobs) as hand:
        hand.fetch()
        hand.finished()
        settler = hand.worker.settler
        settler._line = Broken(settler._line, [trouble(), trouble()])  # type: ignore[assignment]
        for _ in range(2):
            with pytest.raises((DatabaseError, sqlite3.OperationalError)):
                settler.tick()
            assert (settler.waiting, handle.status()) == (1, "claimed")
        settler.tick()
    assert (handle.result(timeout=0), ran, jobs.get(handle.id).crashes) == (7, [7], 0)


def test_an_outcome_that_is_refused_is_stored_as_a_failure_and_holds_up_nobody(
    jobs: Dibs, sqlite: Database, caplog: pytest.LogCaptureFixture
) -> None:
    jobs.configure("default", backoff=Backoff.none())
    sqlite.query(
        "create trigger refuse before insert on dibs_history when new.result = '13' "
        "begin select raise(abort, 'no thirteen'); end"
    )

    @jobs.task(max_attempts=2)
    def work(n: int) -> int:
        return n

    handles = [work.enqueue(n) for n in (12, 13, 14)]
    with by_hand(jobs) as hand:
        hand.fetch()
        hand.settle(3)
        assert [handle.status() for handle in handles] == ["completed", "ready", "completed"]
        hand.run()
    record = jobs.get(handles[1].id)
    assert (record.status, record.attempts, record.crashes) == ("dead", 2, 0)
    assert [(error.kind, "no thirteen" in error.message) for error in record.errors] == [("refused", True)] * 2
    assert "is refused" in caplog.text


class Treacherous:
    """A result that cannot be written: what is asked of it fails with an error of its own."""

    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("the session is closed")


def test_a_result_that_fails_when_it_is_written_is_its_jobs_failure(jobs: Dibs) -> None:
    @jobs.task(max_attempts=1)
    def in_thread() -> Any:
        return Treacherous()

    @jobs.task(max_attempts=1)
    async def on_loop() -> Any:
        return Treacherous()

    handles = [in_thread.enqueue(), on_loop.enqueue(), in_thread.enqueue()]
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 3
    for handle in handles:
        assert (handle.status(), jobs.get(handle.id).last_error) == ("dead", "the session is closed")


def test_failures_and_deaths_are_in_the_log(jobs: Dibs, caplog: pytest.LogCaptureFixture) -> None:
    @jobs.task(max_attempts=2, backoff=Backoff.fixed(0))
    def work() -> None:
        raise ValueError("no luck")

    handle = work.enqueue()
    with caplog.at_level(logging.DEBUG), by_hand(jobs) as hand:
        hand.run()
        hand.run()
    told = [(record.levelname, record.getMessage()) for record in caplog.records if handle.id in record.getMessage()]
    assert told[-2:] == [
        ("WARNING", f"work {handle.id} failed in attempt 1 and runs again in 0 s: ValueError: no luck"),
        ("ERROR", f"work {handle.id} is dead after attempt 2: ValueError: no luck; see: dibs job logs {handle.id}"),
    ]
