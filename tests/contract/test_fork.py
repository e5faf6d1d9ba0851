"""A forked child has locks, threads and connections of its own, whatever its parent was doing."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dibs import Dibs
from dibs.model import identity
from dibs.store import fork
from tests.support.databases import Database

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
PATIENCE = 20


def _forked(work: Callable[[], object]) -> int:
    """The child's process number. A child that hangs is ended by its alarm, and that is no success."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        work()
        code = 0
    finally:
        os._exit(code)


def _succeeds(child: int) -> bool:
    return os.waitpid(child, 0)[1] == 0


def _every_way(jobs: Dibs) -> None:
    jobs.enqueue("mail", queue="child")
    [job] = jobs.dequeue(["child"])
    jobs.ack(job)
    asyncio.run(jobs.aenqueue("mail", queue="child"))
    jobs.close()


def test_a_child_awaits_verbs_after_its_parent_has(dibs: Dibs) -> None:
    asyncio.run(dibs.aenqueue("mail"))
    assert _succeeds(_forked(lambda: asyncio.run(dibs.aenqueue("mail"))))
    assert dibs.count() == 2


@contextmanager
def _held(*locks: Any) -> Iterator[None]:
    """Held by another thread, which is not there any more after a fork."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in locks:
            lock.acquire()
        taken.set()
        done.wait(PATIENCE)
        for lock in locks:
            lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(PATIENCE)
    try:
        yield
    finally:
        done.set()
        holder.join()


def test_a_lock_that_a_thread_of_the_parent_holds_is_free_in_the_child(dibs: Dibs) -> None:
    dibs.enqueue("mail")
    locks = (dibs._lock, dibs._preparing, dibs._claiming, dibs._claimers._lock, dibs.store._lock, identity._lock)
    with _held(*locks):
        child = _forked(lambda: _every_way(dibs))
    assert _succeeds(child)
    assert dibs.count(queue="child", status="completed") == 1


def test_a_fork_waits_for_the_transaction_of_another_thread(sqlite: Database) -> None:
    begun, asked = threading.Event(), threading.Event()
    herald = threading.Event()  # any object will do: it is told of forks first
    fork.watch(herald, lambda _: None, rest=lambda _: asked.set())
    jobs = Dibs(sqlite.url)

    def write() -> None:
        with jobs.store.session() as (session, _):
            session.begin()
            begun.set()
            asked.wait(PATIENCE)
            session.commit()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(PATIENCE)
    assert _succeeds(_forked(lambda: _every_way(jobs)))
    writer.join()
    assert jobs.count(queue="child") == 2
    jobs.close()


def test_a_child_does_not_wait_for_a_thread_that_takes_too_long(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.store.sqlite.REST_SECONDS", 0.01)
    jobs = Dibs(sqlite.url)
    jobs.enqueue("mail")
    with _held(jobs.store.database._turn):  # type: ignore[attr-defined]
        child = _forked(lambda: _every_way(jobs))
        assert _succeeds(child)
    jobs.close()


def test_what_a_child_stores_outlives_a_parent_that_ends_first(sqlite: Database) -> None:
    jobs = Dibs(sqlite.url)
    jobs.enqueue("mail", {"n": 0})
    (hears_child, child_says), (hears_parent, parent_says) = os.pipe(), os.pipe()

    def outlive() -> None:
        jobs.enqueue("mail", {"n": 1})
        os.write(child_says, b"x")
        os.read(hears_parent, 1)
        jobs.enqueue("mail", {"n": 2})

    child = _forked(outlive)
    os.read(hears_child, 1)
    jobs.close()
    os.write(parent_says, b"x")
    assert _succeeds(child)
    assert [record.payload["n"] for record in jobs.list()] == [2, 1, 0]
    jobs.close()
    for end in (hears_child, child_says, hears_parent, parent_says):
        os.close(end)


def test_a_child_rings_no_worker_of_its_parent(dibs: Dibs) -> None:
    rung: list[int] = []
    dibs.store.listeners.append(lambda: rung.append(1))

    def ring() -> None:
        dibs.enqueue("mail")
        assert rung == []

    assert _succeeds(_forked(ring))
    dibs.enqueue("mail")
    assert rung == [1]


def test_jobs_in_memory_are_a_copy_in_the_child() -> None:
    jobs = Dibs("sqlite://")
    jobs.enqueue("mail", queue="child")

    def work() -> None:
        assert len(jobs.dequeue(["child"])) == 1
        jobs.enqueue("mail")

    assert _succeeds(_forked(work))
    assert jobs.count(status="ready") == 1
    jobs.close()


def test_nobody_is_kept_alive_by_being_told_of_forks() -> None:
    gc.collect()
    known = len(fork._watched)
    Dibs("sqlite://").close()
    gc.collect()
    assert len(fork._watched) == known
