"""Leases: kept while a job is worked on, and what happens when one is lost or a time limit is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dibs import Backoff, Dibs, current_job
from dibs.errors import DatabaseUnreachable
from dibs.store.runner import Operation
from dibs.worker.attempt import CurrentJob
from tests.support.clock import FakeClock
from tests.support.databases import Database
from tests.support.waiting import wait_until
from tests.worker.by_hand import ByHand, by_hand, until

NOW = Backoff.none()


class Handlers:
    """Two handlers that wait for the test, and what they saw."""

    def __init__(self, jobs: Dibs, **options: Any) -> None:
        self.started = threading.Semaphore(0)
        self.go = threading.Event()
        self.seen: list[Any] = []

        @jobs.task(**options)
        def in_thread() -> str:
            self.started.release()
            wait_until(lambda: self.go.is_set() or current_job().cancelled, "go, or the end of the lease")
            self.seen.append("cancelled" if current_job().cancelled else "went on")
            return "an answer"

        @jobs.task(**options)
        async def on_loop() -> str:
            self.started.release()
            try:
                await until(self.go.is_set)
            except asyncio.CancelledError:
                self.seen.append("cancelled")
                raise
            self.seen.append("went on")
            return "an answer"

        self.tasks = {"thread": in_thread, "loop": on_loop}

    def begin(self, hand: ByHand) -> CurrentJob:
        """Claim and wait for the handler to begin."""
        [attempt] = hand.fetch()
        assert self.started.acquire(timeout=10)
        return attempt


@pytest.fixture
def handlers(jobs: Dibs) -> Iterator[Handlers]:
    """Handlers on SQLite, released at the end."""
    made = Handlers(jobs, timeout="10s", max_attempts=2, backoff=NOW)
    yield made
    made.go.set()


def _expire(database: Database) -> None:
    database.query(f"update {database.table('job')} set lease_until = lease_until - 1000000000")


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_handler_past_its_time_limit_is_stopped_and_the_attempt_counts(
    jobs: Dibs, handlers: Handlers, kind: str
) -> None:
    handle = handlers.tasks[kind].enqueue()
    with by_hand(jobs) as hand:
        attempt = handlers.begin(hand)
        hand.watch()
        assert not attempt.cancelled
        attempt._started -= 11
        hand.watch()
        hand.settle()
        wait_until(lambda: handlers.seen == ["cancelled"], "the handler to hear of it")
    found = jobs.get(handle.id)
    assert (found.status, found.attempts, found.result) == ("ready", 1, None)
    assert [(error.kind, error.type) for error in found.errors] == [("timeout", "TimeLimitExceeded")]
    assert "10 s" in found.errors[0].message


def test_the_time_limit_of_the_job_comes_before_that_of_task_and_queue(jobs: Dibs, handlers: Handlers) -> None:
    jobs.configure("default", timeout="5s")
    handlers.tasks["thread"].using(timeout="1m").enqueue()
    with by_hand(jobs) as hand:
        attempt = handlers.begin(hand)
        attempt._started -= 11
        hand.watch()
        assert not attempt.cancelled
        attempt._started -= 50
        hand.watch()
        assert attempt.cancelled


def test_a_loop_that_is_blocked_cannot_keep_a_job_beyond_its_time_limit(jobs: Dibs) -> None:
    go, begun = threading.Event(), threading.Event()

    @jobs.task(timeout="10s", max_attempts=1)
    async def block() -> None:
        begun.set()
        go.wait(10)

    handle = block.enqueue()
    with by_hand(jobs) as hand:
        [attempt] = hand.fetch()
        assert begun.wait(10)
        attempt._started -= 11
        hand.watch()
        assert hand.worker.settler.waiting == 0, "a coroutine gets time to obey"
        attempt._started -= 5
        hand.watch()
        hand.settle()
        go.set()
    assert (handle.status(), jobs.get(handle.id).errors[0].kind) == ("dead", "timeout")


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_lease_taken_by_somebody_else_stops_the_handler_and_nothing_is_stored(
    sqlite: Database, jobs: Dibs, handlers: Handlers, kind: str
) -> None:
    handle = handlers.tasks[kind].enqueue()
    with by_hand(jobs) as hand:
        handlers.begin(hand)
        _expire(sqlite)
        assert jobs.reclaim() == 1
        hand.beat()
        wait_until(lambda: handlers.seen == ["cancelled"], "the handler to hear of it")
        wait_until(lambda: not hand.worker._runners[kind].stuck, "the end of the handler")
        assert (hand.held, hand.worker.settler.waiting, hand.worker.guard.lost) == ([], 0, 1)
    found = jobs.get(handle.id)
    assert (found.result, found.crashes, [error.kind for error in found.errors]) == (None, 1, ["lease lost"])


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_without_a_beat_in_time_the_worker_gives_up_before_another_can_get_the_job(
    jobs: Dibs, handlers: Handlers, kind: str
) -> None:
    handlers.tasks[kind].enqueue()
    with by_hand(jobs, lease=60) as hand:
        attempt = handlers.begin(hand)
        attempt._fence -= 50
        hand.watch()
        assert hand.held == [attempt]
        attempt._fence -= 5
        hand.watch()
        wait_until(lambda: handlers.seen == ["cancelled"], "the handler to hear of it")
        assert hand.held == []


def test_a_database_that_hangs_does_not_keep_the_guard_from_its_watch(
    jobs: Dibs, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers.tasks["thread"].enqueue()
    hangs, answered = threading.Event(), threading.Event()
    worker = jobs.worker(lease=1)

    def hang(_make: object) -> set[str]:
        hangs.set()
        answered.wait(10)
        raise DatabaseUnreachable("It answers late.")

    monkeypatch.setattr(worker.keeper._line, "call", hang)
    with worker:
        assert handlers.started.acquire(timeout=10)
        assert hangs.wait(10)
        wait_until(lambda: handlers.seen == ["cancelled"], "the handler to hear of it")
        answered.set()


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_an_answer_that_comes_after_the_lease_was_lost_is_not_stored(
    sqlite: Database, jobs: Dibs, handlers: Handlers, kind: str
) -> None:
    handle = handlers.tasks[kind].enqueue()
    with by_hand(jobs) as hand:
        handlers.begin(hand)
        _expire(sqlite)
        jobs.reclaim()
        handlers.go.set()
        hand.settle()
        assert (hand.worker.settler.outcomes.total(), hand.worker.settler.lost, hand.held) == (0, 1, [])
    found = jobs.get(handle.id)
    assert (found.status.final, found.result) == (False, None)


def test_an_expired_lease_nobody_has_taken_back_still_counts_for_its_holder(
    sqlite: Database, jobs: Dibs, handlers: Handlers
) -> None:
    handle = handlers.tasks["loop"].enqueue()
    with by_hand(jobs) as hand:
        handlers.begin(hand)
        _expire(sqlite)
        handlers.go.set()
        hand.settle()
    assert handle.status() == "completed"


def test_a_job_whose_lease_is_lost_before_its_turn_is_never_started(jobs: Dibs, handlers: Handlers) -> None:
    handlers.tasks["thread"].enqueue()
    ran: list[int] = []

    @jobs.task(priority=1)
    def second() -> None:
        ran.append(1)

    second.enqueue()
    with by_hand(jobs, concurrency=1) as hand:
        first = handlers.begin(hand)
        hand.worker.hold.pace.record(0.001)  # jobs are short, says the past: one more is held ahead
        late = next(attempt for attempt in hand.fetch() if attempt is not first)
        hand.worker.guard.lose(late)
        handlers.go.set()
        hand.settle()
        wait_until(lambda: not hand.worker._runners["thread"].waiting, "the lost job's turn")
    assert ran == []


def test_a_job_whose_turn_comes_after_its_lease_is_handed_back_unrun(jobs: Dibs, handlers: Handlers) -> None:
    handlers.tasks["thread"].enqueue()
    ran: list[int] = []

    @jobs.task(priority=1)
    def second() -> None:
        ran.append(1)

    handle = second.enqueue()
    with by_hand(jobs, concurrency=1) as hand:
        first = handlers.begin(hand)
        hand.worker.hold.pace.record(0.001)
        late = next(attempt for attempt in hand.fetch() if attempt is not first)
        late._fence = 0.0  # the process was stopped for long: the guard has had no time to look yet
        handlers.go.set()
        hand.settle(2)
    assert (ran, handle.status(), jobs.get(handle.id).attempts) == ([], "ready", 0)


def test_the_lease_is_kept_until_the_outcome_is_stored(
    timed: Dibs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = Handlers(timed)
    handle = handlers.tasks["loop"].enqueue()
    with by_hand(timed, lease=60) as hand:
        handlers.begin(hand)
        handlers.go.set()
        hand.finished()
        for _ in range(3):
            clock.advance(40)
            hand.beat()
        assert timed.reclaim() == 0
        hand.settle()
    assert handle.status() == "completed"


def test_a_running_job_is_shown_as_running_from_its_first_beat_on(jobs: Dibs, handlers: Handlers) -> None:
    handle = handlers.tasks["thread"].enqueue()
    with by_hand(jobs) as hand:
        attempt = handlers.begin(hand)
        assert handle.status() == "claimed"
        attempt._started -= 1
        attempt._beat_at -= 2
        hand.worker.keeper.tick()
        assert handle.status() == "running"
        handlers.go.set()
        hand.settle()


def test_the_lease_of_the_worker_comes_before_that_of_the_queue(jobs: Dibs, handlers: Handlers) -> None:
    jobs.configure("default", lease="5m")
    spans = []
    for options in ({}, {"lease": "2m"}):
        handle = handlers.tasks["loop"].enqueue()
        with by_hand(jobs, **options) as hand:
            handlers.begin(hand)
            found = jobs.get(handle.id)
            assert found.lease_until is not None
            assert found.claimed_at is not None
            spans.append((found.lease_until - found.claimed_at).total_seconds())
            handlers.go.set()
            hand.settle()
            handlers.go.clear()
    assert spans == [300, 120]


class Unlucky:
    """A line whose connection breaks after the commit, before the answer: once."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self.calls = 0

    def __call__(self, make: Callable[[], Operation[Any]]) -> Any:
        self.calls += 1
        answer = self._call(make)
        if self.calls == 1:
            raise DatabaseUnreachable("The answer was lost.")
        return answer


def test_a_settle_whose_answer_was_lost_is_repeated_and_succeeds(each: Dibs, monkeypatch: pytest.MonkeyPatch) -> None:
    @each.task
    async def work() -> str:
        return "done"

    handle = work.enqueue()
    with by_hand(each) as hand:
        unlucky = Unlucky(hand.worker.settler._line.call)
        monkeypatch.setattr(hand.worker.settler._line, "call", unlucky)
        hand.fetch()
        hand.finished()
        with pytest.raises(DatabaseUnreachable):
            hand.worker.settler.tick()
        assert len(hand.held) == 1, "it is held until the answer is sure"
        hand.settle()
        settler = hand.worker.settler
        assert (unlucky.calls, settler.outcomes.total(), settler.lost, hand.held) == (2, 1, 0, [])
    assert handle.result(timeout=0) == "done"


def test_an_old_outcome_does_not_make_the_worker_forget_the_jobs_next_attempt(jobs: Dibs) -> None:
    @jobs.task(backoff=NOW)
    async def work() -> None:
        raise ValueError

    work.enqueue()
    with by_hand(jobs) as hand:
        [first] = hand.fetch()
        hand.settle()
        [second] = hand.fetch()
        assert second.id == first.id
        hand.worker.hold.remove([first])  # the settler's thread comes last
        assert hand.held == [second]
        hand.settle()
