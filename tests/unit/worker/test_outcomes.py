"""From how a handler ended to what is stored, with the settings of job, task and queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dibs.errors import UnknownTask
from dibs.model.backoff import DEFAULT_BACKOFF, Backoff
from dibs.model.json_text import encode
from dibs.model.options import JobOptions
from dibs.model.outcome import Back, Cancel, Final, Policy, Problem, Retry, Snooze
from dibs.model.settings import DEFAULT_TIMEOUT, QueueSettings
from dibs.task.registry import Definition
from dibs.worker import attempt as module
from dibs.worker.attempt import CurrentJob
from dibs.worker.outcomes import Outcomes
from tests.support.clock import FakeMonotonic
from tests.unit.fakes import Opaque, a_job

ONE, TWO, THREE = Backoff.fixed(1), Backoff.fixed(2), Backoff.fixed(3)
PLAIN = Definition("work", print, JobOptions(), "thread")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The clock of this test."""
    fake = FakeMonotonic()
    monkeypatch.setattr(module, "time", fake)
    return fake


def _attempt(options: dict[str, Any] | None = None, task: dict[str, Any] | None = None, **row: Any) -> CurrentJob:
    """An attempt at a job with options of its own, of a task with options of its own."""
    text = None if options is None else encode(options).decode()
    return CurrentJob(a_job(1, options=text, **row), replace(PLAIN, **(task or {})), 1_000.0, 60.0)


def _outcomes(**queue: Any) -> Outcomes:
    outcomes = Outcomes(100)
    outcomes.queues = {"default": (False, QueueSettings(**queue))}
    return outcomes


@pytest.mark.parametrize(
    ("job", "task", "queue", "backoff"),
    [
        (ONE, TWO, THREE, ONE),
        (None, TWO, THREE, TWO),
        (None, None, THREE, THREE),
        (None, None, None, DEFAULT_BACKOFF),
        (Backoff.none(), TWO, THREE, Backoff.none()),
    ],
)
def test_the_backoff_nearest_to_the_job_counts(
    job: Backoff | None, task: Backoff | None, queue: Backoff | None, backoff: Backoff
) -> None:
    attempt = _attempt(None if job is None else {"backoff": job.as_json()}, {"backoff": task})
    found = _outcomes(backoff=queue).policy(attempt).backoff
    assert [found.delay(failures, 0.5) for failures in (1, 3)] == [backoff.delay(failures, 0.5) for failures in (1, 3)]


@pytest.mark.parametrize(("job", "queue", "limit"), [(2, 9, 2), (None, 9, 9), (None, None, 5)])
def test_the_limit_of_attempts_is_that_of_the_job_before_that_of_the_queue(
    job: int | None, queue: int | None, limit: int
) -> None:
    assert _outcomes(max_attempts=queue).policy(_attempt(max_attempts=job)).max_attempts == limit


@pytest.mark.parametrize(("task", "queue", "limit"), [(2, 9, 2), (None, 9, 9), (None, None, 3)])
def test_the_crash_budget_is_that_of_the_task_before_that_of_the_queue(
    task: int | None, queue: int | None, limit: int
) -> None:
    assert _outcomes(max_crashes=queue).policy(_attempt(task={"max_crashes": task})).max_crashes == limit


@pytest.mark.parametrize(
    ("job", "task", "queue", "limit"),
    [(1, 2, 3, 1), (None, 2, 3, 2), (None, None, 3, 3), (None, None, None, DEFAULT_TIMEOUT)],
)
def test_the_time_limit_nearest_to_the_job_counts(job: Any, task: Any, queue: Any, limit: float) -> None:
    attempt = _attempt(None if job is None else {"timeout": job}, {"timeout": task})
    assert _outcomes(timeout=queue).time_limit(attempt) == limit


def test_a_queue_nobody_has_configured_leaves_all_to_the_defaults() -> None:
    assert Outcomes(100).policy(_attempt()) == Policy()
    assert Outcomes(100).time_limit(_attempt()) == DEFAULT_TIMEOUT


@pytest.mark.parametrize(("crashes", "last"), [(0, False), (1, False), (2, True), (3, True)])
def test_the_last_chance_is_the_one_before_the_crash_budget_ends(crashes: int, last: bool) -> None:
    assert _outcomes().at_last_chance(_attempt(crashes=crashes)) is last


@pytest.mark.parametrize(("value", "text"), [(None, None), (0, "0"), ([1], "[1]")])
def test_a_handler_that_returns_completes_its_job_with_its_age(time: FakeMonotonic, value: Any, text: Any) -> None:
    attempt = _attempt()
    attempt._started = time.now - 1.5
    assert _outcomes().returned(attempt, value) == Final(attempt.id, 7, "completed", text, 1_500_000)


@pytest.mark.parametrize("value", [Opaque(), "x" * 200, float("nan")], ids=["no JSON", "too large", "NaN"])
def test_a_result_that_cannot_be_kept_fails_the_attempt(value: Any) -> None:
    attempt = _attempt()
    settled = _outcomes(backoff=ONE).returned(attempt, value)
    assert isinstance(settled, Back)
    assert (settled.delay, settled.refund) == (1_000_000, 0)
    assert settled.problem is not None
    assert "The result" in settled.problem.message


def test_a_control_means_the_same_returned_and_raised(time: FakeMonotonic) -> None:
    attempt = _attempt(attempts=5)
    attempt._started = time.now - 2
    for control in (Snooze(5), Retry(5), Cancel("no")):
        assert _outcomes().returned(attempt, control) == _outcomes().raised(attempt, control)
    cancelled = _outcomes().raised(attempt, Cancel("no"))
    assert isinstance(cancelled, Final)
    assert (cancelled.outcome, cancelled.age) == ("cancelled", 2_000_000)


def test_a_handler_that_raises_in_its_last_attempt_ends_its_job_with_its_age(time: FakeMonotonic) -> None:
    attempt = _attempt(attempts=5)
    attempt._started = time.now - 3
    dead = _outcomes().raised(attempt, UnknownTask("nobody knows it."))
    assert isinstance(dead, Final)
    assert (dead.outcome, dead.age, dead.problem and dead.problem.type) == ("dead", 3_000_000, "UnknownTask")


def test_a_time_limit_is_told_with_its_seconds() -> None:
    attempt = _attempt()
    attempt._timeout = 1.5
    settled = _outcomes(backoff=ONE).timed_out(attempt)
    assert settled == Back(
        attempt.id,
        7,
        1_000_000,
        problem=Problem("timeout", "TimeLimitExceeded", "The handler was stopped after its time limit of 1.5 s"),
    )


def test_a_process_that_died_counts_against_the_crash_budget() -> None:
    settled = _outcomes(backoff=ONE).crashed(_attempt(), "killed by signal 9")
    assert isinstance(settled, Back)
    assert (settled.crash, settled.refund) == (1, 0)
    assert settled.problem == Problem("crash", "ProcessDied", "killed by signal 9")
    assert isinstance(_outcomes(max_crashes=1).crashed(_attempt(), "killed"), Final)


def test_a_job_that_was_not_run_goes_back_to_its_very_place() -> None:
    attempt = _attempt(available_at=1_234)
    assert _outcomes().returned_unrun(attempt) == Back(attempt.id, 7, 0, refund=1, at=1_234)
    assert _outcomes().returned_unrun(attempt, 0) == Back(attempt.id, 7, 0, refund=1)


def test_a_job_that_was_cut_off_keeps_attempt_and_place_and_says_why() -> None:
    attempt = _attempt()
    unrun, cut = _outcomes().returned_unrun(attempt), _outcomes().cut_off(attempt)
    assert cut._replace(problem=None) == unrun
    assert cut.problem is not None
    assert cut.problem.kind == "shutdown"
