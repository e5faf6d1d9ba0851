"""Lines of docs/requirements.md that no other suite holds: what the documents asked for, in their own words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from dibs import Backoff, Dibs, LeaseLost, Status
from dibs.door.settings import DEFAULTS
from dibs.errors import PayloadTooLarge
from dibs.model.identity import new_ids
from dibs.model.settings import DEFAULT_RETENTION, DEFAULT_TIMEOUT
from dibs.model.status import FINAL, HELD, TRANSITIONS, WAITING
from tests.support.clock import FakeClock
from tests.support.databases import Database


def _view(database: Database, columns: str, job_id: str) -> dict[str, Any]:
    [row] = database.query(f"select {columns} from {database.table('jobs')} where id = '{job_id}'")
    return dict(zip([name.strip() for name in columns.split(",")], row, strict=True))


FIRST = (
    "id, job_type, priority, status, data, progress, current_stage, events_count, worker_id, claimed_at, created_at, "
    "started_at, completed_at, attempts, max_attempts, last_error"
)


def test_the_view_shows_every_column_the_first_document_lists(dibs: Dibs, database: Database) -> None:
    handle = dibs.enqueue("index", {"file": 7})
    waiting = _view(database, FIRST, handle.id)
    assert (waiting["job_type"], waiting["priority"], waiting["status"]) == ("index", 100, "ready")
    assert (waiting["progress"], waiting["attempts"], waiting["max_attempts"]) == (0, 0, 5)
    assert waiting["completed_at"] is None
    [job] = dibs.dequeue(worker="w1")
    claimed = _view(database, FIRST, handle.id)
    assert (claimed["status"], claimed["worker_id"], claimed["attempts"]) == ("claimed", "w1", 1)
    assert claimed["claimed_at"] is not None
    dibs.ack(job)
    completed = _view(database, FIRST, handle.id)
    assert (completed["status"], completed["progress"]) == ("completed", 100)
    assert completed["completed_at"] is not None
    assert completed["started_at"] is not None


def test_the_view_answers_to_the_words_of_the_other_documents(dibs: Dibs, database: Database) -> None:
    handle = dibs.enqueue("mail_digest", {"user": 7}, queue="mail", unique="user-7")
    shown = _view(database, "queue, topic, task, run_at, available_at, lease_until, retries, unique_key", handle.id)
    assert (shown["topic"], shown["task"], shown["queue"]) == ("mail_digest", "mail_digest", "mail")
    assert (shown["run_at"], shown["retries"], shown["lease_until"]) == (shown["available_at"], 0, None)
    assert shown["unique_key"] == "user-7"


def test_a_claimed_job_is_running_only_when_its_holder_says_so(dibs: Dibs) -> None:
    handle = dibs.enqueue("index")
    [job] = dibs.dequeue()
    assert handle.status() == Status.CLAIMED
    assert dibs.heartbeat(job)
    assert handle.status() == Status.RUNNING


def test_a_failed_attempt_frees_the_job_and_keeps_its_error(dibs: Dibs, database: Database) -> None:
    handle = dibs.enqueue("index")
    [job] = dibs.dequeue(worker="w1")
    dibs.nack(job, "disk full")
    shown = _view(database, "worker_id, claimed_at, last_error, retries", handle.id)
    assert shown == {"worker_id": None, "claimed_at": None, "last_error": "disk full", "retries": 1}
    assert handle.status() == Status.RETRYING


def test_recovery_counts_what_it_took_back_and_leaves_nothing_claimed(timed: Dibs, clock: FakeClock) -> None:
    again, over = timed.enqueue("index"), timed.enqueue("index", max_attempts=1)
    assert len(timed.dequeue(limit=2, lease="5m")) == 2
    assert timed.reclaim() == 0
    clock.advance("6m")
    assert timed.reclaim() == 2
    assert again.status() == Status.RETRYING
    assert over.status() == Status.DEAD
    assert [error.kind for error in timed.get(over.id).errors] == ["lease lost"]


@pytest.mark.parametrize("attempts", [5, 1], ids=["that was given to nobody since", "that recovery has ended"])
def test_a_stale_holder_cannot_finish_a_job(timed: Dibs, clock: FakeClock, attempts: int) -> None:
    handle = timed.enqueue("index", max_attempts=attempts)
    [job] = timed.dequeue(lease="30s")
    clock.advance("1m")
    assert timed.reclaim() == 1
    before = timed.get(handle.id)
    for finish in (lambda: timed.ack(job, "done"), lambda: timed.nack(job, "late"), lambda: timed.snooze(job, "1m")):
        with pytest.raises(LeaseLost):
            finish()
    assert timed.get(handle.id) == before


def test_a_job_survives_the_program_that_enqueued_it(database: Database) -> None:
    first = Dibs(database.url)
    handle = first.enqueue("index", {"file": 7})
    first.close()
    second = Dibs(database.url)
    [job] = second.dequeue(wait="5s")
    assert (job.id, job.payload) == (handle.id, {"file": 7})
    second.ack(job)
    second.close()


def test_all_failed_jobs_of_a_queue_come_back_at_once(dibs: Dibs) -> None:
    for number in range(3):
        dibs.enqueue("send", number, queue="mail", max_attempts=1)
    dibs.nack_many([(job, "away") for job in dibs.dequeue(limit=3)])
    assert len(dibs.list(queue="mail", status="dead")) == 3
    assert dibs.retry(queue="mail") == 3
    assert sorted(job.payload for job in dibs.dequeue(queues=["mail"], limit=3)) == [0, 1, 2]


def test_cleaning_up_deletes_finished_jobs_only_and_by_their_finish(timed: Dibs, clock: FakeClock) -> None:
    held, waiting = timed.enqueue("slow"), timed.enqueue("later", delay="30d")
    timed.dequeue(tasks=["slow"], lease="30d")
    timed.enqueue("old")
    timed.ack_many(timed.dequeue(tasks=["old"]))
    clock.advance("2d")
    fresh = timed.enqueue("fresh")
    timed.ack_many(timed.dequeue(tasks=["fresh"]))
    assert timed.prune() == 1
    assert [fresh.status(), held.status(), waiting.status()] == ["completed", "claimed", "scheduled"]


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


def test_a_backoff_can_be_the_square_of_the_failures_in_minutes(timed: Dibs, clock: FakeClock) -> None:
    timed.configure("default", backoff=Backoff.polynomial(2, "1m"))
    handle = timed.enqueue("send")
    for failures in (1, 2, 3):
        [job] = timed.dequeue()
        timed.nack(job, "away")
        wait = _due(timed, handle.id) - clock.time()
        assert abs(wait - timedelta(minutes=failures**2)) < timedelta(seconds=1)
        clock.advance(wait)


def _due(dibs: Dibs, job_id: str) -> datetime:
    due = dibs.get(job_id).available_at
    assert due is not None
    return due


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


def test_a_dequeue_recovers_expired_leases_by_itself(timed: Dibs, clock: FakeClock) -> None:
    timed.configure("default", backoff=Backoff.none())
    timed.enqueue("index")
    [lost] = timed.dequeue(lease="30s")
    clock.advance("1m")
    [taken] = timed.dequeue()
    assert taken.id == lost.id


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


def test_a_heartbeat_extends_a_live_lease_only(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue("index")
    [job] = timed.dequeue(lease="30s")
    clock.advance("20s")
    assert timed.heartbeat(job, extend="30s")
    clock.advance("20s")
    assert timed.heartbeat(job, extend="30s")
    clock.advance("31s")
    assert not timed.heartbeat(job, extend="30s")


def test_an_ack_moves_the_row_to_the_history_with_its_result(dibs: Dibs, database: Database) -> None:
    handle = dibs.enqueue("index", unique="file-7")
    [job] = dibs.dequeue(worker="w1")
    dibs.ack(job, {"pages": 3})
    assert (database.count("job"), database.count("history")) == (0, 1)
    record = dibs.get(handle.id)
    assert (record.result, record.status, record.worker_id, record.unique_key) == (
        {"pages": 3}, "completed", "w1", "file-7",
    )  # fmt: skip


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


def test_counts_tell_what_is_ready_held_and_scheduled_by_queue_and_priority(dibs: Dibs) -> None:
    for priority in (150, 100, 100):
        dibs.enqueue("send", queue="mail", priority=priority)
    dibs.enqueue("send", queue="mail", delay="1h")
    assert len(dibs.dequeue()) == 1
    live = {(row.queue, row.priority, row.status): row.jobs for row in dibs.stats().live}
    assert live == {("mail", 150, "claimed"): 1, ("mail", 100, "ready"): 2, ("mail", 100, "scheduled"): 1}


@pytest.mark.parametrize("write", ["ack_many", "nack_many", "snooze_many", "heartbeat_many"])
def test_every_verb_of_a_loop_also_takes_many(dibs: Dibs, write: str) -> None:
    for number in range(20):
        dibs.enqueue("send", number)
    held = dibs.dequeue(limit=20)
    verbs: dict[str, Callable[[], list[Any]]] = {
        "ack_many": lambda: dibs.ack_many(held),
        "nack_many": lambda: dibs.nack_many([(job, "away") for job in held]),
        "snooze_many": lambda: dibs.snooze_many(held, "1m"),
        "heartbeat_many": lambda: dibs.heartbeat_many(held),
    }
    assert verbs[write]() == []
