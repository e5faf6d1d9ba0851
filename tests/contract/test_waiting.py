"""Verbs that wait: across a restart of the database, beside an event loop, and until their task is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from dibs import Dibs
from dibs.errors import DatabaseUnreachable, ResultTimeout
from tests.support.waiting import PATIENCE


class Outage:
    """A database that cannot be connected to until it is `over`."""

    def __init__(self, jobs: Dibs) -> None:
        self.noticed = threading.Event()
        self._connect = jobs.store.database.connect
        self._over = threading.Event()

    def connect(self) -> Any:
        if self._over.is_set():
            return self._connect()
        self.noticed.set()
        raise DatabaseUnreachable("It restarts.")

    def over(self) -> None:
        self._over.set()


@pytest.fixture
def outage(dibs: Dibs, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Outage]:
    """Begins an outage of the database."""

    def begin() -> Outage:
        found = Outage(dibs)
        monkeypatch.setattr(dibs.store.database, "connect", found.connect)
        dibs.store.close()
        return found

    return begin


def _twice(verb: Callable[..., Any]) -> Callable[..., Any]:
    """An asynchronous verb, called from a thread of its own."""
    return lambda *args, **options: asyncio.run(verb(*args, **options))


@pytest.mark.parametrize("kind", ["result", "aresult"])
def test_a_result_is_waited_for_across_a_restart(dibs: Dibs, outage: Callable[[], Outage], kind: str) -> None:
    handle = dibs.enqueue("mail")
    [job] = dibs.dequeue()
    away = outage()
    wait = handle.result if kind == "result" else _twice(handle.aresult)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait, timeout=PATIENCE)
        assert away.noticed.wait(PATIENCE)
        away.over()
        dibs.ack(job, "done")
        assert waiting.result(PATIENCE) == "done"


@pytest.mark.parametrize("kind", ["dequeue", "adequeue"])
def test_a_dequeue_waits_across_a_restart(dibs: Dibs, outage: Callable[[], Outage], kind: str) -> None:
    away = outage()
    wait = dibs.dequeue if kind == "dequeue" else _twice(dibs.adequeue)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait, wait=PATIENCE)
        assert away.noticed.wait(PATIENCE)
        away.over()
        handle = dibs.enqueue("mail")
        assert [job.id for job in waiting.result(PATIENCE)] == [handle.id]


def test_a_database_that_stays_away_is_unreachable_when_the_wait_is_over(
    dibs: Dibs, outage: Callable[[], Outage]
) -> None:
    handle = dibs.enqueue("mail")
    with pytest.raises(ResultTimeout, match=r"after 0\.02 seconds"):
        handle.result(timeout=0.02)
    away = outage()
    for wait in (lambda: handle.result(timeout=0.02), lambda: handle.result(0), dibs.dequeue):
        with pytest.raises(DatabaseUnreachable, match="It restarts"):
            wait()
    with pytest.raises(DatabaseUnreachable, match="It restarts"):
        dibs.dequeue(wait=0.02)
    away.over()
    assert [job.id for job in dibs.dequeue()] == [handle.id]


class Gate:
    """Lets a call through when it is opened. If the loop that should open it stands still, it stays shut."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()
        self.opened: list[bool] = []

    def open(self) -> None:
        self._open.set()

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, which waits here first."""

        def held(*args: Any, **options: Any) -> Any:
            self.reached.set()
            self.opened.append(self._open.wait(PATIENCE))
            return call(*args, **options)

        return held

    def after(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, which waits here before it answers."""

        def held(*args: Any, **options: Any) -> Any:
            answer = call(*args, **options)
            self.reached.set()
            self.opened.append(self._open.wait(PATIENCE))
            return answer

        return held


@contextmanager
def _thread() -> Iterator[Callable[[Callable[[], object]], asyncio.Future[Any]]]:
    """Waits for something in a thread that is gone afterwards."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda work: asyncio.get_running_loop().run_in_executor(pool, work)


def test_an_event_loop_goes_on_while_tables_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, gate = Dibs("sqlite://"), Gate()
    monkeypatch.setattr(jobs, "migrate", gate.before(jobs.migrate))

    async def story() -> None:
        first = asyncio.create_task(jobs.aenqueue("mail"))
        with _thread() as in_thread:
            await in_thread(lambda: gate.reached.wait(PATIENCE))
        second = asyncio.create_task(jobs.aenqueue("mail"))
        await asyncio.sleep(0)
        gate.open()
        await asyncio.gather(first, second)

    asyncio.run(story())
    assert gate.opened == [True]
    assert jobs.count() == 2
    jobs.close()


def test_an_event_loop_goes_on_while_another_call_claims(dibs: Dibs, monkeypatch: pytest.MonkeyPatch) -> None:
    dibs.enqueue_many([dibs.job("mail"), dibs.job("mail")])
    gate = Gate()
    monkeypatch.setattr("dibs.store.claimer.Claimer.claim", gate.before(_claim_of()))

    async def story() -> int:
        first = asyncio.create_task(dibs.adequeue())
        with _thread() as in_thread:
            await in_thread(lambda: gate.reached.wait(PATIENCE))
        second = asyncio.create_task(dibs.adequeue(worker="another"))
        await asyncio.sleep(0)
        gate.open()
        return len(await first) + len(await second)

    assert asyncio.run(story()) == 2
    assert set(gate.opened) == {True}


def _claim_of() -> Callable[..., Any]:
    from dibs.store.claimer import Claimer

    return Claimer.claim


def _three(dibs: Dibs) -> list[Any]:
    ids = [dibs.enqueue("mail", priority=priority).id for priority in (5, 9, 5)]
    return [dibs.get(job_id) for job_id in ids]


def _as_if_never_claimed(dibs: Dibs, before: list[Any]) -> None:
    asyncio.run(dibs.aclose())
    after = [dibs.get(record.id) for record in before]
    assert [(record.status, record.attempts) for record in after] == [("ready", 0)] * 3
    assert [record.available_at for record in after] == [record.available_at for record in before]
    first, second, third = before
    assert [job.id for job in dibs.dequeue(limit=3)] == [second.id, first.id, third.id]


def test_what_a_dequeue_claims_after_it_was_cancelled_goes_back_to_its_place(
    dibs: Dibs, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, gate = _three(dibs), Gate()

    async def story() -> None:
        task = asyncio.create_task(dibs.adequeue(limit=3, wait=PATIENCE))
        with _thread() as in_thread:
            await in_thread(lambda: gate.reached.wait(PATIENCE))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open()

    with monkeypatch.context() as patch:
        patch.setattr(dibs, "_claim", gate.after(dibs._claim))
        asyncio.run(story())
    _as_if_never_claimed(dibs, before)


def test_what_a_dequeue_had_claimed_when_it_was_cancelled_goes_back_too(
    dibs: Dibs, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, started = _three(dibs), list[Future[Any]]()

    def start(*given: Any) -> Future[Any]:
        started.append(original(*given))
        return started[-1]

    async def story() -> None:
        task = asyncio.create_task(dibs.adequeue(limit=3))
        await asyncio.sleep(0)
        futures.wait(started, PATIENCE)  # the loop stands still meanwhile: the answer is there, nobody has seen it
        assert len(started[0].result()) == 3
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    original = dibs._start
    monkeypatch.setattr(dibs, "_start", start)
    asyncio.run(story())
    _as_if_never_claimed(dibs, before)


def test_a_claim_that_cannot_be_handed_back_is_told(
    dibs: Dibs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dibs.enqueue("mail")
    gate = Gate()

    def refuse(*_given: Any) -> None:
        raise DatabaseUnreachable("It restarts.")

    async def story() -> None:
        task = asyncio.create_task(dibs.adequeue())
        with _thread() as in_thread:
            await in_thread(lambda: gate.reached.wait(PATIENCE))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open()
        await dibs.aclose()

    monkeypatch.setattr(dibs, "_claim", gate.after(dibs._claim))
    monkeypatch.setattr(dibs, "_settle", refuse)
    asyncio.run(story())
    assert "was not handed back" in caplog.text
