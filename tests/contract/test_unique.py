"""A unique key admits one live job of a queue, and enqueue says which job it is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import cast

import psycopg
import pytest

from dibs import Dibs, Job
from dibs.errors import Duplicate
from dibs.model.options import OnConflict
from tests.conftest import Make
from tests.support.clock import FakeClock
from tests.support.databases import Database, Server
from tests.support.waiting import wait_until

LOOK_ALIKES = [
    "Order-A",
    "order-a",
    "Örder-a",
    "O\u0308rder-a",
    "order-a ",
    " order-a",
    "ORDER-A",
    "order-a\t",
    "order–a",
]


def _claim(jobs: Dibs) -> Job:
    [job] = jobs.dequeue()
    return job


@pytest.mark.parametrize("choice", ["existing", "skip"])
def test_a_second_enqueue_answers_the_job_that_has_the_key(dibs: Dibs, choice: OnConflict, database: Database) -> None:
    first = dibs.enqueue("mail", {"n": 1}, unique="key")
    second = dibs.enqueue("mail", {"n": 2}, unique="key", priority=3, on_conflict=choice)
    assert (first.created, second.id, second.created, second.replaced) == (True, first.id, False, False)
    found = dibs.get(first.id)
    assert (found.payload, found.priority) == ({"n": 1}, 100)
    assert database.count("job") == 1


def test_a_second_enqueue_can_be_refused_with_the_id_of_the_first(dibs: Dibs, database: Database) -> None:
    first = dibs.enqueue("mail", unique="key")
    with pytest.raises(Duplicate) as raised:
        dibs.enqueue("mail", unique="key", on_conflict="raise")
    assert raised.value.data == {"id": first.id}
    assert dibs.enqueue("mail", unique="other", on_conflict="raise").created
    assert database.count("job") == 2


def test_a_waiting_job_takes_everything_of_the_newer_request(timed: Dibs, clock: FakeClock) -> None:
    first = timed.enqueue("mail", {"n": 1}, unique="key", delay="1h", tags=["old"], max_attempts=2)
    second = timed.enqueue("post", {"n": 2}, unique="key", priority=7, tags=["new"], on_conflict="replace")
    assert (second.id, second.created, second.replaced) == (first.id, False, True)
    found = timed.get(first.id)
    assert (found.task, found.payload, found.priority, found.tags) == ("post", {"n": 2}, 7, ("new",))
    assert (found.max_attempts, found.status) == (5, "ready")
    assert _claim(timed).id == first.id


def test_a_replaced_job_has_all_its_attempts_before_it(timed: Dibs, clock: FakeClock) -> None:
    first = timed.enqueue("mail", {"n": 1}, unique="key", max_attempts=2)
    timed.nack(_claim(timed), "bad payload", "1h")
    assert timed.enqueue("mail", {"n": 2}, unique="key", max_attempts=2, on_conflict="replace").replaced
    timed.nack(_claim(timed), "worse", 0)
    found = timed.get(first.id)
    assert (found.status, found.attempts, len(found.errors)) == ("ready", 1, 2)


def test_a_job_that_is_held_is_not_replaced(dibs: Dibs) -> None:
    first = dibs.enqueue("mail", {"n": 1}, unique="key")
    job = _claim(dibs)
    second = dibs.enqueue("mail", {"n": 2}, unique="key", on_conflict="replace")
    assert (second.id, second.created, second.replaced) == (first.id, False, False)
    assert dibs.get(first.id).payload == {"n": 1}
    dibs.ack(job)
    assert dibs.enqueue("mail", {"n": 3}, unique="key", on_conflict="replace").created


def _wait_again(jobs: Dibs) -> None:
    jobs.nack(_claim(jobs), "failed", retry_in="1h")


ALIVE: dict[str, Callable[[Dibs], None]] = {
    "ready": lambda jobs: None,
    "claimed": lambda jobs: _claim(jobs) and None,
    "running": lambda jobs: jobs.heartbeat(_claim(jobs)) and None,
    "retrying": _wait_again,
    "scheduled": lambda jobs: jobs.snooze(_claim(jobs), "1h"),
}
ENDED: dict[str, Callable[[Dibs], None]] = {
    "completed": lambda jobs: jobs.ack(_claim(jobs)),
    "dead": lambda jobs: jobs.nack(_claim(jobs), "failed"),
    "cancelled": lambda jobs: jobs.cancel(queue="default") and None,
    "discarded": lambda jobs: jobs.discard(queue="default") and None,
}


@pytest.mark.parametrize("status", ALIVE)
def test_the_key_is_held_while_the_job_lives(dibs: Dibs, status: str) -> None:
    first = dibs.enqueue("mail", unique="key")
    ALIVE[status](dibs)
    assert first.status() == status
    assert dibs.enqueue("mail", unique="key").id == first.id


@pytest.mark.parametrize("status", ENDED)
def test_the_key_is_free_again_when_the_job_has_ended(dibs: Dibs, status: str) -> None:
    first = dibs.enqueue("mail", unique="key", max_attempts=1)
    ENDED[status](dibs)
    assert first.status() == status
    second = dibs.enqueue("mail", unique="key")
    assert second.created
    assert second.id != first.id
    assert dibs.get(first.id).unique_key == "key"


def test_a_key_counts_within_its_queue(dibs: Dibs, database: Database) -> None:
    handles = [dibs.enqueue("mail", unique="key", queue=queue) for queue in ("a", "b", "A")]
    assert [handle.created for handle in handles] == [True, True, True]
    assert database.count("job") == 3


def test_keys_that_look_alike_stay_as_many_jobs(dibs: Dibs, database: Database) -> None:
    singles = [dibs.enqueue("mail", unique=key) for key in LOOK_ALIKES]
    assert all(handle.created for handle in singles)
    assert database.count("job") == len(LOOK_ALIKES)
    batch = dibs.enqueue_many([dibs.job("mail", unique=key) for key in reversed(LOOK_ALIKES)])
    assert [handle.id for handle in reversed(batch)] == [handle.id for handle in singles]
    assert {job.unique_key for job in dibs.dequeue(limit=99)} == set(LOOK_ALIKES)


def test_the_longest_key_of_the_widest_letters_is_kept(dibs: Dibs) -> None:
    key = "\U0001f4ee" * 191
    assert dibs.enqueue("mail", unique=key).created
    assert _claim(dibs).unique_key == key


def test_a_key_twice_in_one_batch_is_one_job(dibs: Dibs, database: Database) -> None:
    batch = [dibs.job("mail", {"n": n}, unique=key) for n, key in enumerate(["b", "a", "b", "a"])]
    handles = dibs.enqueue_many([*batch, dibs.job("mail")])
    assert [handle.created for handle in handles] == [True, True, False, False, True]
    assert (handles[2].id, handles[3].id) == (handles[0].id, handles[1].id)
    assert dibs.get(handles[0].id).payload == {"n": 0}
    assert database.count("job") == 3


def test_of_many_concurrent_enqueues_of_a_key_one_makes_the_job(dibs: Dibs, database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(lambda n: dibs.enqueue("mail", {"n": n}, unique="key"), range(40)))
    assert len({handle.id for handle in handles}) == 1
    assert [handle.created for handle in handles].count(True) == 1
    assert database.count("job") == 1


def _begin(database: Database) -> psycopg.Connection:  # or another driver's: all have execute and close here
    connection = database.connect()
    connection.execute("begin immediate" if database.dialect == "sqlite" else "begin")
    return connection


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_concurrent_inserter_of_the_key_is_waited_for(dibs: Dibs, database: Database, ending: str) -> None:
    with closing(_begin(database)) as first, ThreadPoolExecutor(1) as pool:
        held = dibs.enqueue("mail", {"n": 1}, unique="key", connection=first)
        waiting = pool.submit(dibs.enqueue, "mail", {"n": 2}, unique="key")
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.1)
        if database.dialect != "sqlite":
            waits = cast("Server", database).waiting_for_a_lock
            wait_until(lambda: waits() == 1, "the second enqueue to wait for the first")
        first.execute(ending)
        answer = waiting.result(timeout=10)
    assert answer.created is (ending == "rollback")
    assert (answer.id == held.id) is (ending == "commit")
    assert database.count("job") == 1


def test_a_job_that_is_being_replaced_cannot_be_claimed(server: Server, dibs_on: Make) -> None:
    jobs = dibs_on(server.url)
    first = jobs.enqueue("mail", {"n": 1}, unique="key")
    with closing(_begin(server)) as writer:
        replaced = jobs.enqueue("mail", {"n": 2}, unique="key", on_conflict="replace", connection=writer)
        assert (replaced.id, replaced.replaced) == (first.id, True)
        assert jobs.dequeue() == []
        writer.execute("commit")
    assert _claim(jobs).payload == {"n": 2}


def test_a_replacement_waits_for_whoever_holds_the_row(server: Server, dibs_on: Make) -> None:
    jobs = dibs_on(server.url)
    first = jobs.enqueue("mail", {"n": 1}, unique="key")
    with closing(_begin(server)) as claimer, ThreadPoolExecutor(1) as pool:
        claimer.execute(f"select id from {server.table('job')} for update")
        waiting = pool.submit(jobs.enqueue, "mail", {"n": 2}, unique="key", on_conflict="replace")
        wait_until(lambda: server.waiting_for_a_lock() == 1, "the replacement to wait for the claim")
        claimer.execute("commit")
        answer = waiting.result(timeout=10)
    assert (answer.id, answer.replaced) == (first.id, True)
    assert jobs.get(first.id).payload == {"n": 2}


def test_bulk_batches_in_opposite_order_do_not_wait_for_each_other(server: Server, dibs_on: Make) -> None:
    jobs = dibs_on(server.url)
    with closing(_begin(server)) as first, ThreadPoolExecutor(1) as pool:
        held = jobs.enqueue("mail", unique="a", connection=first)
        backwards = [jobs.job("mail", unique="b"), jobs.job("mail", unique="a")]
        waiting = pool.submit(jobs.enqueue_many, backwards)
        wait_until(lambda: server.waiting_for_a_lock() == 1, "the batch to wait for key a")
        other = jobs.enqueue("mail", unique="b", connection=first)  # a deadlock if the batch held b by now
        assert other.created
        first.execute("commit")
        assert [handle.id for handle in waiting.result(timeout=10)] == [other.id, held.id]
    assert server.count("job") == 2
