"""What becomes of a claimed job: recorded once, by the holder of its current token, and by nobody else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dibs import Dibs, Job
from dibs.errors import InvalidOption, InvalidPayload, LeaseLost, PayloadTooLarge
from dibs.model.outcome import Back, Final, Problem
from dibs.store import settle as operations
from tests.conftest import Make
from tests.support.clock import FakeClock
from tests.support.databases import Database


def _claim(jobs: Dibs, lease: str = "1m") -> Job:
    [job] = jobs.dequeue(lease=lease)
    return job


def _picture(database: Database) -> list[Any]:
    """Everything that is stored of jobs."""
    return [
        database.query(f"select * from {database.table(name)} order by 1")
        for name in ("job", "history", "attempt_error")
    ]


def test_an_acknowledged_job_moves_to_the_history_with_its_result(
    timed: Dibs, clock: FakeClock, database: Database
) -> None:
    handle = timed.enqueue("mail", {"n": 1}, unique="key", tags=["a"], max_attempts=3)
    job = _claim(timed)
    clock.advance("2s")
    timed.ack(job, {"sent": [1, 2.5, None, "é\U0001f4ee"]})
    assert (database.count("job"), database.count("history")) == (0, 1)
    found = timed.get(handle.id)
    assert (found.status, found.result) == ("completed", {"sent": [1, 2.5, None, "é\U0001f4ee"]})
    assert (found.payload, found.unique_key, found.tags) == ({"n": 1}, "key", ("a",))
    assert (found.attempts, found.max_attempts, found.token, found.worker_id) == (1, 3, 1, job.locked_by)
    assert found.finished_at is not None
    assert found.claimed_at is not None
    assert timedelta(seconds=2) <= found.finished_at - found.claimed_at < timedelta(seconds=3)
    assert (found.lease_until, found.errors) == (None, ())


@pytest.mark.parametrize("result", [None, 0, False, "", [], {}, [None], "text", 1.25, {"a": {"b": [1]}}])
def test_any_json_value_may_be_a_result(dibs: Dibs, result: Any) -> None:
    handle = dibs.enqueue("mail")
    dibs.ack(_claim(dibs), result)
    assert handle.result(timeout=1) == result


def test_a_result_that_cannot_be_kept_leaves_the_job_to_its_holder(database: Database, dibs_on: Make) -> None:
    jobs = dibs_on(database.url, payload_limit=100)
    handle = jobs.enqueue("mail")
    job = _claim(jobs)
    for wrong, error in ((float("nan"), InvalidPayload), (object(), InvalidPayload), ("x" * 101, PayloadTooLarge)):
        with pytest.raises(error, match="result"):
            jobs.ack(job, wrong)
    assert handle.status() == "claimed"
    jobs.ack(job, "fine")
    assert handle.result(timeout=1) == "fine"


def test_a_failed_job_waits_and_runs_again(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail")
    timed.nack(_claim(timed), ValueError("no such address"), retry_in="30s")
    found = timed.get(handle.id)
    assert (found.status, found.attempts, found.worker_id, found.lease_until) == ("retrying", 1, None, None)
    assert found.last_error == "no such address"
    assert timed.dequeue() == []
    clock.advance("30s")
    job = _claim(timed)
    assert (job.id, job.attempts, job.token) == (handle.id, 2, 2)


def test_a_snoozed_job_waits_and_the_attempt_does_not_count(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", max_attempts=1)
    for round_ in range(1, 4):
        job = _claim(timed)
        assert (job.attempts, job.token) == (1, round_)
        timed.snooze(job, "1h")
        found = timed.get(handle.id)
        assert (found.status, found.attempts, found.errors) == ("scheduled", 0, ())
        clock.advance("1h")


def test_a_heartbeat_extends_the_lease_from_now_and_says_that_it_runs(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail")
    job = _claim(timed, lease="10s")
    clock.advance("9s")
    assert timed.heartbeat(job, extend="30s")
    found = timed.get(handle.id)
    assert (found.status, found.started_at is not None) == ("running", True)
    assert found.lease_until is not None
    assert timedelta(seconds=29) < found.lease_until - clock.time() <= timedelta(seconds=30)


def test_a_heartbeat_does_not_revive_an_expired_lease(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue("mail")
    job = _claim(timed, lease="10s")
    clock.advance("10s")
    assert not timed.heartbeat(job)
    assert timed.heartbeat_many([job]) == [job]


def test_a_late_acknowledgement_counts_as_long_as_nobody_took_the_job(timed: Dibs, clock: FakeClock) -> None:
    """The token decides, not the clock."""
    handle = timed.enqueue("mail")
    job = _claim(timed, lease="10s")
    clock.advance("1h")
    timed.ack(job, "late")
    assert handle.result(timeout=1) == "late"
    assert timed.reclaim() == 0


def _stale(timed: Dibs, clock: FakeClock) -> tuple[Job, Job]:
    """A job, as its lost holder knows it and as its new one does."""
    timed.enqueue("mail", {"n": 1})
    old = _claim(timed, lease="10s")
    clock.advance("1m")
    assert timed.reclaim() == 1
    clock.advance("1h")
    return old, _claim(timed)


def _heartbeat_or_raise(jobs: Dibs, job: Job) -> None:
    if not jobs.heartbeat(job):
        raise LeaseLost("heartbeat")


VERBS: dict[str, Callable[[Dibs, Job], object]] = {
    "ack": lambda jobs, job: jobs.ack(job, "stale"),
    "nack": lambda jobs, job: jobs.nack(job, "stale"),
    "snooze": lambda jobs, job: jobs.snooze(job, 1),
    "heartbeat": _heartbeat_or_raise,
}
MANY: dict[str, Callable[[Dibs, list[Job]], list[Job]]] = {
    "ack_many": lambda jobs, held: jobs.ack_many((job, "stale") for job in held),
    "nack_many": lambda jobs, held: jobs.nack_many((job, "stale") for job in held),
    "snooze_many": lambda jobs, held: jobs.snooze_many(held, 1),
    "heartbeat_many": lambda jobs, held: jobs.heartbeat_many(held),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_stale_token_is_told_so_and_writes_nothing(
    timed: Dibs, clock: FakeClock, database: Database, verb: str
) -> None:
    old, new = _stale(timed, clock)
    before = _picture(database)
    with pytest.raises(LeaseLost):
        VERBS[verb](timed, old)
    assert _picture(database) == before
    VERBS[verb](timed, new)
    assert _picture(database) != before


@pytest.mark.parametrize("verb", VERBS)
def test_a_job_that_is_back_in_its_queue_belongs_to_nobody(
    timed: Dibs, clock: FakeClock, database: Database, verb: str
) -> None:
    timed.enqueue("mail")
    job = _claim(timed, lease="10s")
    clock.advance("1m")
    timed.reclaim()
    before = _picture(database)
    with pytest.raises(LeaseLost):
        VERBS[verb](timed, job)
    assert _picture(database) == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("ending", ["ack", "dead", "crash", "nack"])
def test_a_job_that_has_ended_or_failed_otherwise_is_out_of_reach(
    timed: Dibs, clock: FakeClock, database: Database, verb: str, ending: str
) -> None:
    timed.enqueue("mail", max_attempts=2 if ending == "nack" else 1)
    job = _claim(timed, lease="10s")
    if ending == "ack":
        timed.ack(job)
    elif ending == "crash":
        clock.advance("1m")
        assert timed.reclaim() == 1
    else:
        timed.nack(job, "failed")
    repeated = (verb, ending) in {("ack", "ack"), ("nack", "dead"), ("nack", "nack")}
    before = _picture(database)
    if repeated:
        VERBS[verb](timed, job)  # the same outcome, of the same claim: its first answer may have been lost
    else:
        with pytest.raises(LeaseLost):
            VERBS[verb](timed, job)
    assert _picture(database) == before


@pytest.mark.parametrize("verb", MANY)
def test_of_many_jobs_those_that_are_lost_are_named_and_the_others_settled(
    timed: Dibs, clock: FakeClock, database: Database, verb: str
) -> None:
    timed.enqueue_many([timed.job("mail", {"n": n}) for n in range(4)])
    held = timed.dequeue(limit=4, lease="10s")
    timed.ack(held[0], "first")
    timed.nack(held[1], "failed", retry_in=0)
    again = _claim(timed)
    assert again.id == held[1].id
    # The same failure of the same claim, told again, is no loss: its first answer may have been lost.
    assert [job.payload["n"] for job in MANY[verb](timed, held[1:])] == ([] if verb == "nack_many" else [1])
    assert timed.get(again.id).token == again.token == 2


@pytest.mark.parametrize("verb", MANY)
def test_an_old_and_a_new_claim_of_one_job_are_told_apart_in_one_call(timed: Dibs, clock: FakeClock, verb: str) -> None:
    old, new = _stale(timed, clock)
    assert MANY[verb](timed, [new, old, new]) == [old]


@pytest.mark.parametrize("verb", MANY)
def test_many_of_nothing_is_nothing_to_do(dibs: Dibs, verb: str) -> None:
    assert MANY[verb](dibs, []) == []


@pytest.mark.parametrize("repeat", ["nack", "snooze"])
def test_a_job_put_back_is_put_back_once_however_often_its_holder_says_so(
    timed: Dibs, database: Database, repeat: str
) -> None:
    timed.enqueue("mail")
    job = _claim(timed)
    VERBS[repeat](timed, job)
    before = _picture(database)
    VERBS[repeat](timed, job)
    assert _picture(database) == before
    with pytest.raises(LeaseLost):
        VERBS["snooze" if repeat == "nack" else "nack"](timed, job)
    assert _picture(database) == before


def test_a_repeated_acknowledgement_does_not_change_the_first_result(dibs: Dibs) -> None:
    handle = dibs.enqueue("mail")
    job = _claim(dibs)
    dibs.ack(job, 1)
    dibs.ack(job, 2)
    assert dibs.ack_many([job, (job, 3)]) == []
    assert handle.result(timeout=1) == 1


def test_outcomes_of_every_kind_may_come_in_one_batch(timed: Dibs, clock: FakeClock, database: Database) -> None:
    timed.enqueue_many([timed.job("mail", {"n": n}) for n in range(5)])
    held = timed.dequeue(limit=5)
    problem = Problem("error", "ValueError", "no", None)
    batch = [
        Final(held[0].id, 1, "completed", "[1]"),
        Final(held[1].id, 1, "dead", problem=problem),
        Back(held[2].id, 1, 5_000_000, problem=problem),
        Back(held[3].id, 1, 0, refund=1),
        Final(held[4].id, 7, "discarded"),
    ]
    attempts = {job.id: (job.attempts, job.locked_by) for job in held}
    lost = timed.store.call(lambda: operations.settle(timed.store.dialect, batch, attempts))
    assert lost == {held[4].id}
    records = [timed.get(job.id) for job in held]
    assert [record.status for record in records] == ["completed", "dead", "retrying", "ready", "claimed"]
    assert [len(record.errors) for record in records] == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("wrong", [-1, "soon", "5 minutes", float("nan"), True, timedelta(seconds=-1), "101000d"])
def test_an_impossible_delay_is_refused_and_the_job_stays_held(dibs: Dibs, wrong: Any) -> None:
    handle = dibs.enqueue("mail")
    job = _claim(dibs)
    for verb in (
        lambda: dibs.nack(job, "failed", retry_in=wrong),
        lambda: dibs.snooze(job, wrong),
        lambda: dibs.heartbeat(job, extend=wrong),
        lambda: dibs.dequeue(lease=wrong),
    ):
        with pytest.raises(InvalidOption):
            verb()
    assert handle.status() == "claimed"
