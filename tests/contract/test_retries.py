"""How often a job may fail or lose its holder, how long it waits in between, and what is kept of each attempt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from dibs import Backoff, Dibs, Job
from dibs.errors import JobFailed
from dibs.model.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT
from tests.conftest import Make
from tests.support.clock import FakeClock
from tests.support.databases import Database

SHAPES = {
    "none": (Backoff.none(), [0, 0, 0]),
    "fixed": (Backoff.fixed("30s"), [30, 30, 30]),
    "polynomial": (Backoff.polynomial(2, "1m"), [60, 240, 540]),
    "exponential": (Backoff.exponential(base=10, jitter=0), [10, 20, 40]),
    "capped": (Backoff.exponential(base=10, factor=10, jitter=0, cap="2m"), [10, 100, 120]),
}


def _claim(jobs: Dibs, lease: str = "1m") -> Job:
    [job] = jobs.dequeue(lease=lease)
    return job


def _fail(jobs: Dibs, clock: FakeClock) -> float:
    """Fail the next job, and answer how many seconds it now waits."""
    job = _claim(jobs)
    jobs.nack(job, "failed")
    found = jobs.get(job.id).available_at
    assert found is not None
    wait = (found - clock.time()).total_seconds()
    clock.advance(max(0.0, wait) + 0.001)
    return wait


@pytest.mark.parametrize("shape", SHAPES)
def test_each_failure_waits_as_its_backoff_says(timed: Dibs, clock: FakeClock, shape: str) -> None:
    backoff, expected = SHAPES[shape]
    timed.enqueue("mail", backoff=backoff)
    assert [_fail(timed, clock) for _ in expected] == pytest.approx(expected, abs=0.01)


def test_jitter_spreads_the_waits_within_its_bounds(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue_many([timed.job("mail", backoff=Backoff.exponential(base=100, jitter=0.2)) for _ in range(30)])
    held = timed.dequeue(limit=30)
    timed.nack_many([(job, "failed") for job in held])
    due = [timed.get(job.id).available_at for job in held]
    waits = [(at - clock.time()).total_seconds() for at in due if at is not None]
    assert len(set(waits)) > 20
    assert 79.9 < min(waits) < max(waits) <= 120


def test_the_jobs_own_backoff_beats_the_tasks_which_beats_the_queues(timed: Dibs, clock: FakeClock) -> None:
    @timed.task(backoff=Backoff.fixed("2m"))
    def send() -> None: ...

    timed.enqueue("unregistered")
    assert _fail(timed, clock) == pytest.approx(1, abs=0.21)
    timed.cancel(queue="default")
    timed.configure("default", backoff=Backoff.fixed("1m"))
    timed.enqueue("unregistered")
    assert _fail(timed, clock) == pytest.approx(60, abs=0.01)
    timed.cancel(queue="default")
    send.enqueue()
    assert _fail(timed, clock) == pytest.approx(120, abs=0.01)
    timed.cancel(queue="default")
    send.using(backoff=Backoff.fixed("3m")).enqueue()
    assert _fail(timed, clock) == pytest.approx(180, abs=0.01)


def test_the_jobs_own_limit_beats_the_tasks_which_beats_the_queues(timed: Dibs, clock: FakeClock) -> None:
    @timed.task(max_attempts=3)
    def send() -> None: ...

    def attempts() -> int:
        tried = 0
        while found := timed.dequeue():
            tried += 1
            timed.nack(found[0], "failed", retry_in=0)
        return tried

    timed.enqueue("unregistered")
    assert attempts() == 5
    timed.configure("default", max_attempts=4)
    timed.enqueue("unregistered")
    assert attempts() == 4
    send.enqueue()
    assert attempts() == 3
    send.using(max_attempts=2).enqueue()
    assert attempts() == 2


def test_a_retry_time_given_with_the_failure_beats_every_backoff(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue("mail", backoff=Backoff.fixed("1h"))
    job = _claim(timed)
    timed.nack(job, "failed", retry_in="7s")
    found = timed.get(job.id).available_at
    assert found is not None
    assert (found - clock.time()).total_seconds() == pytest.approx(7, abs=0.01)


def test_a_job_is_dead_after_its_last_attempt_with_the_error_of_each(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", max_attempts=3, backoff=Backoff.none())
    started = clock.time()
    for n in range(3):
        try:
            raise ValueError(f"failure {n}")
        except ValueError as error:
            timed.nack(timed.dequeue(worker=f"w{n}")[0], error)
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.last_error) == ("dead", 3, "failure 2")
    assert [error.attempt for error in found.errors] == [1, 2, 3]
    assert [error.message for error in found.errors] == ["failure 0", "failure 1", "failure 2"]
    assert [error.worker for error in found.errors] == ["w0", "w1", "w2"]
    assert {(error.kind, error.type) for error in found.errors} == {("error", "ValueError")}
    assert all('raise ValueError(f"failure {n}")' in str(error.traceback) for error in found.errors)
    assert all(started < error.at <= clock.time() for error in found.errors)
    with pytest.raises(JobFailed, match="failure 2"):
        handle.result(timeout=1)


def test_the_last_failure_is_final_even_with_a_retry_time(dibs: Dibs) -> None:
    handle = dibs.enqueue("mail", max_attempts=1)
    dibs.nack(_claim(dibs), "failed", retry_in=0)
    assert handle.status() == "dead"


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


DIRTY: dict[str, tuple[Any, str]] = {
    "NUL": ("a\x00b", "a\ufffdb"),
    "half a pair": ("a\ud800b\udfff", "a?b?"),
    "NUL in an exception": (ValueError("a\x00\ud800"), "a\ufffd?"),
    "letters of all planes": ("é船\U0001f4ee\x7f\x1b[31m\r\n\t\"'\\%s{}", "é船\U0001f4ee\x7f\x1b[31m\r\n\t\"'\\%s{}"),
    "nothing": ("", ""),
    "an exception without words": (_Unspeakable(), "<exception str() failed>"),
    "no text": (7, "7"),
}


@pytest.mark.parametrize("kind", DIRTY)
def test_any_error_text_is_kept_as_well_as_the_database_can(dibs: Dibs, kind: str) -> None:
    given, kept = DIRTY[kind]
    handle = dibs.enqueue("mail")
    dibs.nack(_claim(dibs), given, retry_in="1h")
    [error] = dibs.get(handle.id).errors
    assert error.message == kept
    assert handle.status() == "retrying"


def test_an_endless_error_text_is_cut_and_not_refused(dibs: Dibs) -> None:
    handle = dibs.enqueue("mail", max_attempts=1)
    try:
        raise ValueError("x" * 1_000_000)
    except ValueError as error:
        dibs.nack(_claim(dibs), error)
    [kept] = dibs.get(handle.id).errors
    assert len(kept.message) == MESSAGE_LIMIT
    assert kept.message.endswith("…")
    assert len(str(kept.traceback)) <= TRACEBACK_LIMIT


def _lose(jobs: Dibs, clock: FakeClock, worker: str = "w") -> None:
    """Claim the next job and let its lease run out."""
    assert len(jobs.dequeue(lease="10s", worker=worker)) == 1
    clock.advance("11s")
    assert jobs.reclaim() == 1


def test_a_lost_holder_costs_the_attempt_and_is_recorded(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", backoff=Backoff.fixed("30s"))
    _lose(timed, clock, "w7")
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.crashes, found.token) == ("retrying", 1, 1, 2)
    assert found.available_at is not None
    assert (found.available_at - clock.time()).total_seconds() == pytest.approx(30, abs=0.01)
    [error] = found.errors
    assert (error.kind, error.attempt, error.worker) == ("lease lost", 1, "w7")
    assert "w7" in error.message


def test_a_job_that_keeps_losing_its_holders_is_dead_after_its_crash_budget(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", max_attempts=99, backoff=Backoff.none())
    for _ in range(3):
        assert handle.status() != "dead"
        _lose(timed, clock)
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.crashes, len(found.errors)) == ("dead", 3, 3, 3)


def test_the_crash_budget_of_a_queue_can_be_set(timed: Dibs, clock: FakeClock) -> None:
    timed.configure("default", max_crashes=1)
    handle = timed.enqueue("mail")
    _lose(timed, clock)
    assert handle.status() == "dead"


def test_the_crash_budget_of_a_task_travels_with_its_jobs(timed: Dibs, clock: FakeClock) -> None:
    @timed.task(max_crashes=1)
    def send() -> None: ...

    plain, tagged = send.enqueue(), send.using(tags=["a"], timeout=5).enqueue()
    assert len(timed.dequeue(limit=2, lease="10s")) == 2
    clock.advance("11s")
    assert timed.reclaim() == 2
    assert (plain.status(), tagged.status()) == ("dead", "dead")
    assert timed.get(tagged.id).tags == ("a",)


def test_a_holder_lost_in_the_last_attempt_ends_the_job(timed: Dibs, clock: FakeClock) -> None:
    """In the documents such a job stays claimed for ever, and keeps its unique key."""
    handle = timed.enqueue("mail", max_attempts=1, unique="key")
    _lose(timed, clock)
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.crashes) == ("dead", 1, 1)
    assert timed.enqueue("mail", unique="key").created


def test_failures_do_not_eat_the_crash_budget(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", max_attempts=99, backoff=Backoff.none())
    for _ in range(5):
        timed.nack(_claim(timed), "failed")
    _lose(timed, clock)
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.crashes) == ("ready", 6, 1)


def test_a_running_job_whose_lease_is_renewed_is_not_taken_back(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue("mail")
    job = _claim(timed, lease="10s")
    for _ in range(5):
        clock.advance("8s")
        assert timed.heartbeat(job, extend="10s")
        assert timed.reclaim() == 0
    timed.ack(job)


def test_a_reclaim_takes_no_more_than_its_limit_and_finds_the_rest_later(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue_many([timed.job("mail", queue=queue) for queue in ("a", "b") for _ in range(10)])
    assert len(timed.dequeue(limit=20, lease="10s")) == 20
    clock.advance("11s")
    taken = [timed.reclaim(limit=8) for _ in range(5)]
    assert max(taken) <= 8
    assert sum(taken) == 20


def test_a_dequeue_takes_expired_leases_back_by_itself(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", backoff=Backoff.none())
    assert len(timed.dequeue(lease="10s")) == 1
    clock.advance("11s")
    job = _claim(timed)
    assert (job.id, job.attempts, job.token, job.crashes) == (handle.id, 2, 3, 1)


def test_expired_leases_are_taken_back_once_by_several_at_a_time(
    timed: Dibs, clock: FakeClock, database: Database, dibs_on: Make
) -> None:
    timed.enqueue_many([timed.job("mail", {"n": n}) for n in range(60)])
    assert len(timed.dequeue(limit=60, lease="10s")) == 60
    clock.advance("11s")
    others = [dibs_on(database.url, clock=clock) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda jobs: jobs.reclaim(), others))
    assert sum(taken) == 60
    assert database.query(f"select distinct crashes, token from {database.table('job')}") == [(1, 2)]
    assert database.count("attempt_error") == 60


def test_the_history_of_attempts_goes_on_after_an_operators_retry(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", max_attempts=1)
    timed.nack(_claim(timed), "first")
    assert timed.retry(handle.id) == 1
    assert timed.get(handle.id).attempts == 0
    timed.nack(_claim(timed), "second")
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.token) == ("dead", 1, 2)
    assert [error.message for error in found.errors] == ["first", "second"]
    assert timedelta(0) < found.errors[1].at - found.errors[0].at
