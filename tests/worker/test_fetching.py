"""How many jobs a worker takes, which ones, and which it leaves to others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dibs import Backoff, Dibs, Retry, Snooze
from dibs.errors import DatabaseUnreachable, InvalidOption
from tests.support.databases import Database
from tests.support.waiting import wait_until
from tests.worker.by_hand import by_hand, until


class Gate:
    """A task whose handlers wait until the test opens the gate; counts how many are inside."""

    def __init__(self, jobs: Dibs, name: str = "wait", **options: Any) -> None:
        self.open = threading.Event()
        self.inside: list[int] = []
        self.most = 0

        @jobs.task(name=name, **options)
        async def wait(n: int = 0) -> int:
            self.inside.append(n)
            self.most = max(self.most, len(self.inside))
            await until(self.open.is_set)
            self.inside.remove(n)
            return n

        self.task = wait

    def filled(self, count: int) -> None:
        """Wait until so many are inside."""
        wait_until(lambda: len(self.inside) >= count, f"{count} running handlers")


@pytest.fixture
def gate(jobs: Dibs) -> Iterator[Gate]:
    """A gate on SQLite, open at the end."""
    made = Gate(jobs)
    yield made
    made.open.set()


def test_a_task_this_worker_does_not_know_is_put_back_without_an_attempt(
    each: Dibs, caplog: pytest.LogCaptureFixture
) -> None:
    handles = [each.enqueue("of-the-next-version") for _ in range(3)]
    with caplog.at_level(logging.WARNING), by_hand(each) as hand:
        hand.run(3)
        assert hand.fetch() == []
    found = [each.get(handle.id) for handle in handles]
    assert {(record.status, record.attempts, record.crashes, record.errors) for record in found} == {
        ("ready", 0, 0, ())
    }
    assert [record.message for record in caplog.records if "not registered" in record.message] == [
        "task 'of-the-next-version' is not registered here; its jobs are left for other workers"
    ]


def test_jobs_run_by_priority_and_in_the_order_they_came(jobs: Dibs) -> None:
    ran: list[int] = []

    @jobs.task
    async def note(n: int) -> None:
        ran.append(n)

    for n, priority in enumerate([1, 5, 1, 9, 5]):
        note.using(priority=priority).enqueue(n)
    with by_hand(jobs) as hand:
        hand.run_all()
    assert ran == [3, 1, 4, 0, 2]


def test_only_the_queues_asked_for_are_served(jobs: Dibs, gate: Gate) -> None:
    gate.open.set()
    mine = gate.task.using(queue="mail").enqueue()
    other = gate.task.using(queue="reports").enqueue()
    with by_hand(jobs, queues=["mail"]) as hand:
        assert hand.run_all() == 1
    assert (mine.status(), other.status()) == ("completed", "ready")


def test_a_paused_queue_is_left_alone_until_it_is_resumed(each: Dibs) -> None:
    @each.task(queue="mail")
    async def send() -> None:
        """Nothing."""

    handle = send.enqueue()
    each.pause("mail")
    with by_hand(each) as hand:
        assert hand.fetch() == []
        assert handle.status() == "ready"
        each.resume("mail")
        hand.run()
    assert handle.status() == "completed"


def test_a_running_worker_follows_pause_and_resume_by_itself(each: Dibs) -> None:
    gate = Gate(each)
    with each.worker():
        gate.task.enqueue(1)
        gate.filled(1)
        each.pause("default")
        held_back = gate.task.enqueue(2)
        gate.open.set()
        wait_until(lambda: not gate.inside, "the end of what ran")
        assert held_back.status() == "ready"
        each.resume("default")
        assert held_back.result(timeout=10) == 2


def test_at_most_as_many_jobs_of_a_queue_run_as_its_cap_allows(jobs: Dibs, gate: Gate) -> None:
    other = Gate(jobs, "other", queue="reports")
    for n in range(10):
        gate.task.using(queue="mail", priority=9).enqueue(n)
        other.task.enqueue(n)
    with jobs.worker(queues={"mail": 2, "reports": 5}, concurrency=16):
        gate.filled(2)
        other.filled(5)
        assert (len(gate.inside), len(other.inside)) == (2, 5)
        gate.open.set()
        wait_until(lambda: len(jobs.list(queue="mail", status="completed")) == 10, "all of the capped queue")
        other.open.set()
        wait_until(lambda: len(jobs.list(queue="reports", status="completed")) == 10, "all of the other queue")
    assert (gate.most, other.most) == (2, 5)


@pytest.mark.parametrize("cap", [0, -1, True, "2", 1.5])
def test_a_cap_that_is_no_number_of_jobs_is_refused(jobs: Dibs, cap: Any) -> None:
    with pytest.raises(InvalidOption, match="mail"):
        jobs.worker(queues={"mail": cap})


def test_before_anything_has_ended_no_more_is_claimed_than_can_run(jobs: Dibs, gate: Gate) -> None:
    jobs.enqueue_many([gate.task.job(n) for n in range(100)])
    with by_hand(jobs, concurrency=4) as hand:
        hand.fetch()
        gate.filled(4)
        for _ in range(3):
            assert len(hand.fetch()) == 4
        gate.open.set()
        hand.settle(4)


def test_short_jobs_are_held_ahead_for_a_tenth_of_a_second(jobs: Dibs, gate: Gate) -> None:
    jobs.enqueue_many([gate.task.job(n) for n in range(100)])
    with by_hand(jobs, concurrency=4) as hand:
        hand.worker.hold.pace.record(0.01)
        assert len(hand.fetch()) == 4 + 40
        gate.open.set()
        hand.settle(44)


def test_jobs_held_ahead_of_long_ones_are_handed_back_to_others(jobs: Dibs, gate: Gate) -> None:
    handles = [gate.task.enqueue(n) for n in range(10)]
    with by_hand(jobs, concurrency=2) as hand:
        hand.worker.hold.pace.record(0.01)  # they were short so far
        hand.fetch()
        gate.filled(2)
        hand.watch()
        assert len(hand.held) == 10
        hand.worker._runners["loop"].moved_at -= 2
        hand.watch()
        hand.settle(8)
        assert len(hand.held) == 2
        assert {jobs.get(handle.id).attempts for handle in handles[2:]} == {0}
        for attempt in hand.held:
            attempt._started -= 2
        assert len(hand.fetch()) == 2, "they are long now"
        gate.open.set()
        hand.settle(len(hand.held))


def test_threads_that_do_not_obey_count_until_their_handlers_end(jobs: Dibs) -> None:
    go = threading.Event()
    begun = threading.Semaphore(0)

    @jobs.task(timeout="10s", max_attempts=1)
    def deaf() -> None:
        begun.release()
        go.wait(10)

    jobs.enqueue_many([deaf.job() for _ in range(5)])
    with by_hand(jobs, concurrency=2) as hand:
        attempts = hand.fetch()
        assert all(begun.acquire(timeout=10) for _ in attempts)
        for attempt in attempts:
            attempt._started -= 11
        hand.watch()
        assert hand.held == attempts, "they have been asked to stop, and are waited for a little"
        for attempt in attempts:
            attempt._started -= 11
        hand.watch()
        hand.settle(2)
        assert hand.held == []
        assert hand.fetch() == [], "both threads are still busy: what is claimed now could not start"
        go.set()
        wait_until(lambda: not hand.worker._runners["thread"].stuck, "the end of the handlers")
        assert len(hand.fetch()) >= 2
        hand.settle(len(hand.held))


def test_until_empty_ends_when_nothing_is_due_and_leaves_the_rest(each: Dibs) -> None:
    answers: list[Any] = [Retry(0), Snooze(0), "done"]

    @each.task(max_attempts=5)
    async def work() -> Any:
        return answers.pop(0)

    first = work.enqueue()
    later = work.using(delay="1h").enqueue()
    assert each.worker().run(until_empty=True) == 3
    assert (first.result(timeout=0), later.status()) == ("done", "scheduled")


def test_until_empty_on_an_empty_database_ends_at_once(each: Dibs) -> None:
    assert each.worker().run(until_empty=True) == 0


def test_what_was_claimed_is_run_although_another_lane_cannot_be_reached(
    jobs: Dibs, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.open.set()
    handle = gate.task.using(priority=9).enqueue(1)
    gate.task.using(priority=1).enqueue(2)
    with by_hand(jobs) as hand:
        claimer = hand.worker.fetcher._claimer
        lease = claimer._lease_jobs

        def unlucky(lane: Any, *rest: Any) -> Any:
            if lane.priority == 1:
                raise DatabaseUnreachable("It went away.")
            return lease(lane, *rest)

        monkeypatch.setattr(claimer, "_lease_jobs", unlucky)
        hand.run()
        assert handle.result(timeout=0) == 1
        with pytest.raises(DatabaseUnreachable):
            hand.fetch()


def test_a_claim_that_comes_in_while_the_worker_stops_is_handed_back(jobs: Dibs, gate: Gate) -> None:
    handle = gate.task.enqueue()
    with by_hand(jobs) as hand:
        hand.worker.fetcher.stop()
        hand.fetch()
        hand.settle()
    assert (handle.status(), jobs.get(handle.id).attempts, gate.inside) == ("ready", 0, [])


# -- suspects: jobs that have lost a holder before


def _make_suspects(jobs: Dibs, database: Database, count: int) -> None:
    """Let a worker take so many jobs and vanish."""
    jobs.configure("default", backoff=Backoff.none())
    assert len(jobs.dequeue(limit=count, worker="gone")) == count
    database.query(f"update {database.table('job')} set lease_until = lease_until - 1000000000")
    assert jobs.reclaim() == count


def _give_last_chances(jobs: Dibs, database: Database, count: int) -> None:
    """Let so many jobs lose their holder twice: the next crash is the third, and the last."""
    for _ in range(2):
        _make_suspects(jobs, database, count)


def test_a_job_at_its_last_chance_runs_alone(sqlite: Database, jobs: Dibs, gate: Gate) -> None:
    gate.task.enqueue(0)
    _give_last_chances(jobs, sqlite, 1)
    with by_hand(jobs, concurrency=8) as hand:
        hand.fetch()
        gate.filled(1)
        for n in range(1, 5):
            gate.task.enqueue(n)
        assert len(hand.fetch()) == 1, "nothing else is claimed beside it"
        gate.open.set()
        hand.settle()
        assert hand.run_all() == 4


def test_innocents_run_beside_a_suspect_and_after_a_while_another_suspect_does(
    sqlite: Database, jobs: Dibs, gate: Gate
) -> None:
    for n in range(2):
        gate.task.enqueue(n)
    _make_suspects(jobs, sqlite, 2)
    gate.task.enqueue(2)
    with by_hand(jobs, concurrency=8) as hand:
        hand.fetch()
        gate.filled(2)
        hand.settle(1)
        assert sorted(gate.inside) == [0, 2], "the other suspect is handed back"
        gate.task.enqueue(3)
        hand.fetch()
        gate.filled(3)
        assert sorted(attempt.payload["n"] for attempt in hand.fetch()) == [0, 2, 3], "and is not even claimed"
        hand.held[0]._started -= 10
        wait_until(lambda: (hand.fetch(), len(gate.inside) == 4)[-1], "the other suspect")
        gate.open.set()
        hand.settle(4)


def test_a_suspect_at_its_last_chance_runs_beside_innocents_only(sqlite: Database, jobs: Dibs, gate: Gate) -> None:
    for n in range(2):
        gate.task.enqueue(n)
    _give_last_chances(jobs, sqlite, 2)
    with by_hand(jobs, concurrency=8) as hand:
        hand.fetch()
        hand.settle(2)
        [lone] = hand.fetch()
        gate.filled(1)
        gate.task.enqueue(2)
        lone._started -= 3
        hand.fetch()
        gate.filled(2)
        for _ in range(3):
            hand.fetch()
        assert sorted(gate.inside) == [0, 2], "the other suspect is not even claimed"
        assert hand.worker.fetcher.claimed == 2 + 1 + 1
        for attempt in hand.held:
            attempt._started -= 60
        wait_until(lambda: (hand.fetch(), hand.settle(0), len(gate.inside) == 3)[-1], "the other suspect")
        gate.open.set()
        hand.settle(3)


def test_a_suspect_that_may_not_run_yet_is_not_even_held_and_keeps_its_place(
    sqlite: Database, jobs: Dibs, gate: Gate
) -> None:
    for n in range(20):
        gate.task.enqueue(n)
    _give_last_chances(jobs, sqlite, 20)
    ran: list[int] = []
    with by_hand(jobs, concurrency=32) as hand:
        hand.fetch()
        hand.settle(20)
        assert (hand.held, gate.inside) == ([], [])
        gate.open.set()
        while hand.fetch():
            assert len(hand.held) == 1
            ran.append(hand.held[0].payload["n"])
            hand.settle()
    assert ran == list(range(20))
    assert {(record.status, record.attempts, record.crashes) for record in jobs.list()} == {("completed", 3, 2)}


def test_a_suspect_does_not_wait_for_ever_for_long_jobs_to_end(sqlite: Database, jobs: Dibs, gate: Gate) -> None:
    gate.task.enqueue(0)
    _give_last_chances(jobs, sqlite, 1)
    long = Gate(jobs, "long", priority=200)
    long.task.enqueue()
    with by_hand(jobs, concurrency=8) as hand:
        hand.fetch()
        long.filled(1)
        hand.settle(1)
        gate.task.using(priority=50).enqueue(1)
        assert [attempt.task for attempt in hand.fetch()] == ["long"], "the way is being cleared"
        suspects = hand.worker.fetcher._suspects
        assert suspects._seen_at is not None
        suspects._seen_at -= 10
        assert sorted(attempt.task for attempt in hand.fetch()) == ["long", "wait"]
        gate.filled(1)
        assert gate.inside == [0]
        gate.open.set()
        long.open.set()
        hand.settle(2)


def test_jobs_that_are_handed_back_keep_their_places(jobs: Dibs, gate: Gate) -> None:
    for n in range(10):
        gate.task.enqueue(n)
    gate.open.set()
    ran: list[int] = []
    with by_hand(jobs, concurrency=10) as hand:
        hand.worker.fetcher.stop()
        hand.fetch()
        hand.settle(10)
    for n in range(10, 12):
        gate.task.enqueue(n)
    with by_hand(jobs, concurrency=1) as hand:
        while hand.fetch():
            ran += [attempt.payload["n"] for attempt in hand.held]
            hand.settle(len(hand.held))
    assert ran == list(range(12))
