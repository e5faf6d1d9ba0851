"""What operators see of jobs and what they can do to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dibs import Dibs, Job
from dibs.errors import InvalidName, InvalidOption, NotFound
from dibs.model.status import FINAL
from dibs.store import jobs as job_operations
from tests.contract.statuses import one_of_each
from tests.support.clock import FakeClock
from tests.support.databases import Database

UNKNOWN = "01890000-0000-7000-8000-000000000001"


def _claim(jobs: Dibs) -> Job:
    [job] = jobs.dequeue()
    return job


def test_every_status_is_told_by_every_way_of_looking(dibs: Dibs, database: Database) -> None:
    made = one_of_each(dibs)
    assert {dibs.get(job_id).status: job_id for job_id in made.values()} == made
    assert {record.status: record.id for record in dibs.list()} == made
    view = database.table("jobs")
    assert {status: str(job_id) for job_id, status in database.query(f"select id, status from {view}")} == made
    for status, job_id in made.items():
        assert [record.id for record in dibs.list(status=status)] == [job_id]


def test_an_unknown_job_is_not_found(dibs: Dibs) -> None:
    with pytest.raises(NotFound, match=UNKNOWN):
        dibs.get(UNKNOWN)
    for verb in (dibs.cancel, dibs.retry, dibs.discard, dibs.run_now):
        assert verb(UNKNOWN) == 0


@pytest.mark.parametrize("wrong", ["7", "", "x" * 36, None, 12, "01890000-0000-7000-8000-00000000000g"])
def test_what_is_no_id_is_refused(dibs: Dibs, wrong: Any) -> None:
    for verb in (dibs.get, dibs.cancel, dibs.retry, dibs.discard, dibs.run_now):
        with pytest.raises(InvalidOption, match="not a job id"):
            verb(wrong)


def test_an_id_may_be_given_as_any_spelling_of_its_uuid(dibs: Dibs) -> None:
    handle = dibs.enqueue("mail")
    for spelling in (handle.id.upper(), handle.id.replace("-", ""), "{" + handle.id + "}"):
        assert dibs.get(spelling).id == handle.id


def test_pages_of_a_list_cover_every_job_once_newest_first(dibs: Dibs) -> None:
    ids = [dibs.enqueue("mail", {"n": n}).id for n in range(25)]
    for job in dibs.dequeue(limit=9):
        dibs.ack(job)
    seen: list[str] = []
    cursor = None
    while page := dibs.list(limit=7, cursor=cursor):
        assert len(page) <= 7
        seen += [record.id for record in page]
        cursor = seen[-1]
    assert seen == ids[::-1]
    assert dibs.count() == 25


def test_a_list_can_be_narrowed_by_queue_task_and_status(dibs: Dibs) -> None:
    ids = {
        (queue, task, delay): dibs.enqueue(task, queue=queue, delay=delay).id
        for queue in ("a", "b")
        for task in ("mail", "post")
        for delay in (0, "1h")
    }
    assert {r.id for r in dibs.list(queue="a")} == {found for (queue, _, _), found in ids.items() if queue == "a"}
    assert {r.id for r in dibs.list(task="post")} == {found for (_, task, _), found in ids.items() if task == "post"}
    assert [r.id for r in dibs.list(queue="b", task="mail", status="scheduled")] == [ids["b", "mail", "1h"]]
    assert dibs.list(queue="a", status=FINAL) == []
    assert dibs.list(status=[]) == []


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 501}, {"status": "done"}, {"status": ["ready", "x"]}, {"cursor": "7"}]
)
def test_an_impossible_page_is_refused(dibs: Dibs, wrong: Any) -> None:
    with pytest.raises(InvalidOption):
        dibs.list(**wrong)


def test_a_job_that_ends_while_a_page_is_read_is_listed_once(dibs: Dibs, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = dibs.enqueue("mail")
    operation = job_operations.find(dibs.store.dialect, job_operations.Filter(), 9)
    request = next(operation)
    with dibs.store.session() as (session, _):
        rows = session.execute(request)
        dibs.ack(_claim(dibs))
        with pytest.raises(StopIteration) as ended:
            operation.send(session.execute(operation.send(rows)))
    assert ended.value.value == [handle.id]


def test_only_jobs_that_wait_are_cancelled(dibs: Dibs) -> None:
    made = one_of_each(dibs)
    assert dibs.cancel(*made.values()) == 3
    ended = {"retrying", "scheduled", "ready", "cancelled"}
    assert {status for status, job_id in made.items() if dibs.get(job_id).status == "cancelled"} == ended


@pytest.mark.parametrize(("verb", "outcome"), [("cancel", "cancelled"), ("discard", "discarded")])
def test_a_whole_queue_or_task_can_be_ended(
    dibs: Dibs, verb: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.door.operating._PAGE", 3)
    dibs.enqueue_many([dibs.job(task, queue=queue) for queue in ("a", "b") for task in ("x", "y") for _ in range(5)])
    act = getattr(dibs, verb)
    assert act(queue="a", task="x") == 5
    assert act(queue="a") == 5
    assert act(task="y") == 5
    assert dibs.count(status=outcome) == 15
    assert dibs.count(queue="b", task="x", status="ready") == 5


@pytest.mark.parametrize("verb", ["cancel", "discard", "retry"])
def test_nothing_is_done_to_every_job_by_accident(dibs: Dibs, verb: str) -> None:
    dibs.enqueue("mail")
    with pytest.raises(InvalidOption, match="every job"):
        getattr(dibs, verb)()
    with pytest.raises(InvalidName):
        getattr(dibs, verb)(queue="a b")
    assert dibs.count(status="ready") == 1


@pytest.mark.parametrize("status", ["dead", "completed", "cancelled", "discarded"])
def test_a_finished_job_can_run_again_as_the_job_it_was(dibs: Dibs, status: str, database: Database) -> None:
    job_id = one_of_each(dibs)[status]
    before = dibs.get(job_id)
    assert dibs.retry(job_id) == 1
    after = dibs.get(job_id)
    assert (after.status, after.attempts, after.crashes, after.result) == ("ready", 0, 0, None)
    assert (after.payload, after.queue, after.task, after.tags) == (
        before.payload,
        before.queue,
        before.task,
        before.tags,
    )
    assert (after.token, after.created_at, after.errors) == (before.token, before.created_at, before.errors)
    found = [job for job in dibs.dequeue(limit=9) if job.id == job_id]
    assert [job.token for job in found] == [before.token + 1]
    assert dibs.retry(job_id) == 0


def test_a_job_that_waits_for_a_retry_can_run_at_once(dibs: Dibs) -> None:
    made = one_of_each(dibs)
    assert dibs.retry(made["retrying"]) == 1
    assert dibs.get(made["retrying"]).status == "ready"
    assert dibs.retry(made["claimed"], made["running"], made["ready"]) == 0


def test_all_dead_jobs_of_a_queue_can_run_again(dibs: Dibs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dibs.door.operating._PAGE", 3)
    dibs.enqueue_many([dibs.job("mail", queue=queue, max_attempts=1) for queue in ("a", "b") for _ in range(8)])
    held = dibs.dequeue(limit=16)
    dibs.nack_many([(job, "failed") for job in held[:12]])
    dibs.ack_many(held[12:])
    dead = dibs.count(queue="a", status="dead")
    assert 0 < dead <= 8
    assert dibs.retry(queue="a") == dead
    assert dibs.count(queue="a", status="ready") == dead
    assert dibs.count(queue="b", status="dead") == 12 - dead
    assert dibs.retry(task="mail", status=["completed", "dead"]) == 16 - dead


def test_a_retry_does_not_take_a_key_from_a_live_job(dibs: Dibs) -> None:
    ended = [dibs.enqueue("mail", {"n": n}, unique="key").id for n in range(1)]
    dibs.ack(_claim(dibs))
    ended.append(dibs.enqueue("mail", {"n": 1}, unique="key").id)
    dibs.ack(_claim(dibs))
    live = dibs.enqueue("mail", {"n": 2}, unique="key")
    assert dibs.retry(*ended) == 0
    assert dibs.cancel(live.id) == 1
    assert dibs.retry(*ended) == 1
    assert [dibs.get(job_id).status for job_id in ended] == ["ready", "completed"]


def test_waiting_jobs_can_be_moved_in_time(timed: Dibs, clock: FakeClock) -> None:
    handles = [timed.enqueue("mail", {"n": n}, delay="1h") for n in range(3)]
    held = timed.enqueue("mail")
    _claim(timed)
    soon = clock.time() + timedelta(minutes=5)
    assert timed.reschedule(handles[0].id, handles[1].id, held.id, run_at=soon) == 2
    assert timed.get(handles[0].id).available_at == soon
    assert timed.run_now(handles[1].id, handles[2].id, held.id) == 2
    assert [job.payload["n"] for job in timed.dequeue(limit=9)] == [1, 2]
    assert timed.reschedule(handles[0].id, run_at=datetime(1970, 1, 1, tzinfo=UTC)) == 1
    assert _claim(timed).payload == {"n": 0}


S_COLUMNS = (
    "id queue task job_type topic priority status payload data result unique_key progress current_stage events_count "
    "attempts max_attempts retries crashes last_error worker_id claimed_at started_at completed_at finished_at "
    "created_at available_at run_at lease_until"
)


def test_the_view_shows_live_and_finished_jobs_with_the_documents_columns(dibs: Dibs, database: Database) -> None:
    made = one_of_each(dibs)
    view = database.table("jobs")
    columns = S_COLUMNS.split()
    rows = {
        row["status"]: row
        for row in (
            dict(zip(columns, found, strict=True))
            for found in database.query(f"select {', '.join(columns)} from {view}")
        )
    }
    assert sorted(rows) == sorted(made)
    completed, dead, running = rows["completed"], rows["dead"], rows["running"]
    assert (completed["job_type"], completed["topic"], completed["progress"]) == ("mail", "mail", 100)
    assert completed["completed_at"] is not None
    assert (dead["last_error"], dead["retries"], dead["attempts"], dead["max_attempts"]) == ("failed", 1, 1, 1)
    assert (running["progress"], running["events_count"], running["current_stage"]) == (0, 0, None)
    assert None not in (running["worker_id"], running["claimed_at"], running["started_at"], running["lease_until"])
    assert rows["ready"]["max_attempts"] == 5
    assert rows["scheduled"]["run_at"] > rows["scheduled"]["created_at"]


def test_the_view_shows_the_limit_of_the_queue_where_the_job_has_none(dibs: Dibs, database: Database) -> None:
    dibs.configure("default", max_attempts=9)
    handle = dibs.enqueue("mail")
    assert dibs.get(handle.id).max_attempts == 9
    assert database.query(f"select max_attempts from {database.table('jobs')}") == [(9,)]


def test_a_handle_speaks_for_its_job(dibs: Dibs) -> None:
    handle = dibs.enqueue("mail", max_attempts=1)
    assert (handle.status(), handle.created, handle.retry()) == ("ready", True, False)
    dibs.nack(_claim(dibs), "failed")
    assert (handle.retry(), handle.status()) == (True, "ready")
    assert (handle.cancel(), handle.status(), handle.cancel()) == (True, "cancelled", False)
    with pytest.raises(NotFound, match="rolled back"):
        type(handle)(dibs, UNKNOWN).status()


def test_the_databases_clock_can_be_asked(timed: Dibs, clock: FakeClock) -> None:
    assert abs(timed.clock() - clock.time()) < timedelta(milliseconds=1)
