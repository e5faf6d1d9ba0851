"""From how a handler ends to what becomes of its job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dibs import Backoff, Cancel, Dibs, Discard, Retry, Snooze, current_job
from dibs.model.job import JobRecord
from tests.worker.by_hand import by_hand

NOW = Backoff.none()
KINDS = ("thread", "loop")


def _task(jobs: Dibs, kind: str, body: Callable[..., Any], **options: Any) -> Any:
    """A `def` or an `async def` task of the same body, that takes a number."""
    if kind == "thread":

        @jobs.task(name="work", **options)
        def work(n: int = 0) -> Any:
            return body(n)

        return work

    @jobs.task(name="work", **options)
    async def awork(n: int = 0) -> Any:
        return body(n)

    return awork


def _until_now(record: JobRecord) -> timedelta:
    assert record.available_at is not None
    return record.available_at - datetime.now(UTC)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_kept_with_the_job_that_gave_it(each: Dibs, kind: str) -> None:
    task = _task(each, kind, lambda n: {"double": 2 * n})
    handle = task.enqueue(4)
    with by_hand(each) as hand:
        hand.run()
    found = each.get(handle.id)
    assert (found.status, found.result, found.attempts, found.errors) == ("completed", {"double": 8}, 1, ())
    assert found.claimed_at is not None
    assert found.started_at is not None
    assert found.finished_at is not None
    assert found.claimed_at <= found.started_at <= found.finished_at


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_job_is_tried_again_and_dead_after_its_last_attempt(each: Dibs, kind: str) -> None:
    def fail(_n: int) -> None:
        raise ValueError(f"attempt {current_job().attempts}")

    handle = _task(each, kind, fail, max_attempts=3, backoff=NOW).enqueue()
    with by_hand(each) as hand:
        assert hand.run_all() == 3
    found = each.get(handle.id)
    assert (found.status, found.attempts, found.crashes) == ("dead", 3, 0)
    assert [(error.attempt, error.type, error.message) for error in found.errors] == [
        (number, "ValueError", f"attempt {number}") for number in (1, 2, 3)
    ]
    assert "in fail" in (found.errors[0].traceback or "")


def test_a_failed_job_waits_for_its_backoff_before_it_runs_again(each: Dibs) -> None:
    handle = _task(each, "loop", lambda n: 1 // n, backoff=Backoff.fixed("1h")).enqueue(0)
    with by_hand(each) as hand:
        hand.run()
        assert hand.fetch() == []
    found = each.get(handle.id)
    assert found.status == "retrying"
    assert timedelta(minutes=59) < _until_now(found) <= timedelta(hours=1)


def test_the_backoff_of_the_job_comes_before_that_of_task_and_queue(each: Dibs) -> None:
    each.configure("default", backoff=Backoff.fixed("3h"), max_attempts=9)
    with_task = _task(each, "loop", lambda n: 1 // n, backoff=Backoff.fixed("2h"))
    own = with_task.using(backoff=Backoff.fixed("1h")).enqueue(0)
    tasks = with_task.enqueue(0)

    @each.task
    def plain() -> None:
        raise ValueError

    queues = plain.enqueue()
    with by_hand(each) as hand:
        hand.fetch()
        hand.settle(3)
    hours = [round(_until_now(each.get(handle.id)) / timedelta(hours=1)) for handle in (own, tasks, queues)]
    assert hours == [1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("raised", [True, False], ids=["raised", "returned"])
@pytest.mark.parametrize(
    ("control", "status", "attempts"),
    [
        (Snooze("1h"), "scheduled", 0),
        (Retry("1h"), "retrying", 1),
        (Cancel("no"), "cancelled", 1),
        (Discard(), "discarded", 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_handler_decides_by_what_it_raises_or_returns(
    jobs: Dibs, kind: str, raised: bool, control: Any, status: str, attempts: int
) -> None:
    def decide(_n: int) -> Any:
        if raised:
            raise control
        return control

    handle = _task(jobs, kind, decide).enqueue()
    with by_hand(jobs) as hand:
        hand.run()
    found = jobs.get(handle.id)
    assert (found.status, found.attempts) == (status, attempts)
    if not found.status.final:
        assert timedelta(minutes=59) < _until_now(found) <= timedelta(hours=1)


def test_a_retry_asked_for_counts_as_an_attempt_and_the_last_one_is_dead(jobs: Dibs) -> None:
    handle = _task(jobs, "loop", lambda _n: Retry(0, reason="not yet"), max_attempts=2).enqueue()
    with by_hand(jobs) as hand:
        assert hand.run_all() == 2
    found = jobs.get(handle.id)
    assert (found.status, [error.message for error in found.errors]) == ("dead", ["not yet", "not yet"])


def test_a_snoozed_job_never_runs_out_of_attempts(jobs: Dibs) -> None:
    seen: list[int] = []

    def snooze(_n: int) -> Any:
        seen.append(current_job().attempts)
        return Snooze(0) if len(seen) < 5 else "done"

    handle = _task(jobs, "loop", snooze, max_attempts=1).enqueue()
    with by_hand(jobs) as hand:
        hand.run_all()
    assert seen == [1, 1, 1, 1, 1]
    found = jobs.get(handle.id)
    assert (found.status, found.attempts, found.errors) == ("completed", 1, ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_is_no_json_fails_the_job_with_the_reason(jobs: Dibs, kind: str) -> None:
    handle = _task(jobs, kind, lambda _n: object(), max_attempts=1).enqueue()
    with by_hand(jobs) as hand:
        hand.run()
    found = jobs.get(handle.id)
    assert found.status == "dead"
    assert "object" in (found.last_error or "")


def test_a_payload_that_does_not_fit_any_more_fails_the_job_and_harms_no_other(jobs: Dibs) -> None:
    jobs.enqueue("work", {"n": "not a number"}, max_attempts=1)
    good = jobs.enqueue("work", {"n": 1})
    _task(jobs, "thread", lambda n: n)
    with by_hand(jobs) as hand:
        hand.fetch()
        hand.settle(2)
    assert good.status() == "completed"
    [bad] = jobs.list(status="dead")
    assert "does not fit" in (bad.last_error or "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), type("Odd", (BaseException,), {})()],
    ids=lambda error: type(error).__name__,
)
def test_a_handler_that_asks_to_exit_fails_its_job_and_the_worker_goes_on(
    jobs: Dibs, kind: str, error: BaseException
) -> None:
    def leave(n: int) -> int:
        if n == 0:
            raise error
        return n

    task = _task(jobs, kind, leave, max_attempts=1)
    bad, good = task.enqueue(0), task.enqueue(1)
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 2
    assert (bad.status(), good.status()) == ("dead", "completed")


def test_text_no_database_would_take_is_cleaned_before_it_is_stored_as_error(each: Dibs) -> None:
    def fail(_n: int) -> None:
        raise ValueError("nul \0, half a pair \ud800, and more " + "x" * 100_000)

    handle = _task(each, "loop", fail, max_attempts=1).enqueue()
    with by_hand(each) as hand:
        hand.run()
    found = each.get(handle.id)
    assert found.status == "dead"
    assert (found.last_error or "").startswith("nul ")
    assert len(found.last_error or "") < 10_000


def test_a_retry_by_hand_gives_all_attempts_back_and_keeps_the_errors(jobs: Dibs) -> None:
    broken = True

    def work(_n: int) -> str:
        if broken:
            raise ValueError("broken")
        return "mended"

    handle = _task(jobs, "loop", work, max_attempts=1).enqueue()
    with by_hand(jobs) as hand:
        hand.run()
        broken = False
        assert handle.retry()
        hand.run()
    found = jobs.get(handle.id)
    assert (found.status, found.result, found.attempts) == ("completed", "mended", 1)
    assert [error.message for error in found.errors] == ["broken"]
