"""Lines of docs/requirements.md that no other suite holds: what the documents asked for, in their own words."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from dibs import Backoff, Dibs, Status
from dibs.door.settings import DEFAULTS
from dibs.errors import PayloadTooLarge
from dibs.model.identity import new_ids
from dibs.model.settings import DEFAULT_RETENTION, DEFAULT_TIMEOUT
from dibs.model.status import FINAL, HELD, TRANSITIONS, WAITING
from tests.support.clock import FakeClock
from tests.support.databases import Database


def test_a_job_survives_the_program_that_enqueued_it(database: Database) -> None:
    first = Dibs(database.url)
    handle = first.enqueue("index", {"file": 7})
    first.close()
    second = Dibs(database.url)
    [job] = second.dequeue(wait="5s")
    assert (job.id, job.payload) == (handle.id, {"file": 7})
    second.ack(job)
    second.close()


def test_completed_jobs_stay_a_day_and_dead_ones_until_told() -> None:
    assert DEFAULT_RETENTION["completed"] == 86_400
    assert DEFAULT_RETENTION["dead"] is None


def test_ids_are_uuids_of_version_seven_that_ascend() -> None:
    ids = new_ids(1_000)
    assert ids == sorted(set(ids))
    assert {UUID(job_id).version for job_id in ids} == {7}


def test_handlers_declared_as_a_map_run_with_the_whole_job(dibs: Dibs) -> None:
    def mail_digest(job):  # type: ignore[no-untyped-def]
        return job.payload["user_id"]

    async def check_payment(job):  # type: ignore[no-untyped-def]
        return job.attempts

    dibs.register({"mail_digest": mail_digest, "check_payment": check_payment})
    handles = [dibs.enqueue("mail_digest", {"user_id": "123"}), dibs.enqueue("check_payment", 7)]
    dibs.worker(concurrency=2).run(until_empty=True)
    assert [handle.result() for handle in handles] == ["123", 1]


def test_another_worker_takes_over_when_the_lease_of_five_minutes_is_over(timed: Dibs, clock: FakeClock) -> None:
    timed.configure("ai", lease="5m", backoff=Backoff.none())
    timed.enqueue("train", queue="ai")
    [lost] = timed.dequeue(queues=["ai"], worker="killed")
    clock.advance("4m59s")
    assert timed.dequeue(queues=["ai"], worker="other") == []
    clock.advance("2s")
    assert timed.reclaim() == 1
    [taken] = timed.dequeue(queues=["ai"], worker="other")
    assert (taken.id, taken.attempts, taken.crashes) == (lost.id, 2, 1)
    assert taken.token > lost.token


def test_a_payload_over_one_megabyte_is_refused_at_the_enqueue(dibs: Dibs) -> None:
    assert DEFAULTS["payload_limit"] == 1_000_000
    with pytest.raises(PayloadTooLarge, match="1,000,000"):
        dibs.enqueue("send", "x" * 1_000_001)


def test_an_attempt_may_run_ten_minutes_unless_somebody_says_otherwise() -> None:
    assert DEFAULT_TIMEOUT == 600


def test_no_table_stores_a_status(dibs: Dibs, database: Database) -> None:
    columns = _columns(database, "job")
    assert "status" not in columns
    assert {"available_at", "lease_until", "worker_id", "token", "attempts", "unique_key"} <= columns


def test_the_history_keeps_everything_the_documents_list(dibs: Dibs, database: Database) -> None:
    listed = {
        "id", "queue", "priority", "unique_key", "payload", "result", "outcome", "attempts", "worker_id", "created_at",
        "started_at", "first_started_at", "finished_at",
    }  # fmt: skip
    assert listed <= _columns(database, "history")


def _columns(database: Database, table: str) -> set[str]:
    connection = database.connect()
    cursor = connection.execute(f"select * from {database.table(table)} limit 0")
    names = {column[0] for column in cursor.description}
    connection.close()
    return names


def test_every_status_is_waiting_held_or_final_and_has_its_ways_out() -> None:
    assert set(Status) == WAITING | HELD | FINAL
    assert TRANSITIONS.keys() == set(Status)
    assert all(TRANSITIONS[status] <= {Status.READY} for status in FINAL)


def test_the_default_backoff_doubles_with_a_fifth_of_jitter_and_a_second_at_least() -> None:
    backoff = Backoff.exponential(base=10)
    for failures, middle in ((1, 10), (2, 20), (5, 160)):
        low, high = backoff.delay(failures, 0.0), backoff.delay(failures, 1.0)
        assert (low.total_seconds(), high.total_seconds()) == pytest.approx((middle * 0.8, middle * 1.2))
    assert Backoff.exponential().delay(1, 0.0) == timedelta(seconds=1)


def test_the_first_lease_of_a_job_is_remembered_beside_its_latest(
    timed: Dibs, database: Database, clock: FakeClock
) -> None:
    handle = timed.enqueue("index")
    [job] = timed.dequeue()
    timed.nack(job, "away", retry_in="1h")
    clock.advance("2h")
    timed.ack_many(timed.dequeue())
    table = database.table("history")
    [(first, latest)] = database.query(f"select first_started_at, claimed_at from {table} where id = '{handle.id}'")
    assert first < latest
