"""Which jobs a dequeue leases, in which order, and to whom."""

from __future__ import annotations

import os
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from dibs import Dibs, Job
from dibs.errors import InvalidName, InvalidOption
from tests.conftest import Make
from tests.support.clock import FakeClock
from tests.support.databases import Database, Server


def _numbers(jobs: list[Job]) -> list[int]:
    return [job.payload["n"] for job in jobs]


def test_a_claimed_job_tells_its_lease_and_its_holder(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", {"n": 1}, queue="a", priority=7, unique="key", max_attempts=9)
    [job] = timed.dequeue(lease="30s", worker="w1")
    assert (job.id, job.queue, job.task, job.priority, job.payload) == (handle.id, "a", "mail", 7, {"n": 1})
    assert (job.token, job.attempts, job.max_attempts, job.crashes) == (1, 1, 9, 0)
    assert (job.unique_key, job.locked_by) == ("key", "w1")
    assert timedelta(seconds=30) - (job.lease_until - clock.time()) < timedelta(milliseconds=1)
    assert job.created_at <= job.available_at
    found = timed.get(handle.id)
    assert (found.status, found.worker_id, found.token, found.attempts) == ("claimed", "w1", 1, 1)
    assert (found.lease_until, found.started_at) == (job.lease_until, None)
    assert found.claimed_at is not None


def test_a_claim_lasts_a_minute_unless_queue_or_caller_say_otherwise(timed: Dibs, clock: FakeClock) -> None:
    timed.configure("slow", lease="5m")
    for queue in ("quick", "slow", "slow"):
        timed.enqueue("mail", queue=queue)
    leases = [timed.dequeue(queues=["quick"]), timed.dequeue(queues=["slow"]), timed.dequeue(lease=2)]
    spans = [(job.lease_until - clock.time()).total_seconds() for [job] in leases]
    assert spans == pytest.approx([60, 300, 2], abs=0.01)


def test_a_holder_without_a_name_is_host_and_process(dibs: Dibs) -> None:
    dibs.enqueue("mail")
    assert dibs.dequeue()[0].locked_by == f"{socket.gethostname()}:{os.getpid()}"


def test_larger_priorities_go_first_then_older_jobs_then_smaller_ids(timed: Dibs, clock: FakeClock) -> None:
    soon, later = clock.time() + timedelta(seconds=5), clock.time() + timedelta(seconds=9)
    plan = [(100, later), (100, soon), (-5, soon), (150, later), (100, soon), (150, later), (100, soon)]
    batch = [timed.job("mail", {"n": n}, priority=priority, run_at=due) for n, (priority, due) in enumerate(plan)]
    timed.enqueue_many(batch)
    clock.advance("10s")
    assert _numbers(timed.dequeue(limit=4)) == [3, 5, 1, 4]
    assert _numbers(timed.dequeue(limit=4)) == [6, 0, 2]


def test_jobs_of_one_moment_are_claimed_in_the_order_of_their_enqueue(timed: Dibs, clock: FakeClock) -> None:
    due = clock.time() + timedelta(seconds=1)
    for n in range(50):
        timed.enqueue("mail", {"n": n}, run_at=due)
    clock.advance("2s")
    assert _numbers(timed.dequeue(limit=50)) == list(range(50))


def test_no_more_than_the_limit_is_claimed(dibs: Dibs, database: Database) -> None:
    dibs.enqueue_many([dibs.job("mail", {"n": n}) for n in range(7)])
    assert [len(dibs.dequeue(limit=3)) for _ in range(4)] == [3, 3, 1, 0]
    assert database.query(f"select count(*) from {database.table('job')} where attempts = 1")[0][0] == 7


@pytest.mark.parametrize("limit", [0, -1, 1_001, True, 1.5, "3", None])
def test_an_impossible_limit_is_refused(dibs: Dibs, limit: Any) -> None:
    dibs.enqueue("mail")
    with pytest.raises(InvalidOption, match="limit"):
        dibs.dequeue(limit=limit)
    assert len(dibs.dequeue()) == 1


def test_only_the_queues_asked_for_are_served(dibs: Dibs) -> None:
    for n, queue in enumerate(["a", "b", "c", "A"]):
        dibs.enqueue("mail", {"n": n}, queue=queue)
    assert sorted(_numbers(dibs.dequeue(queues=["b", "A", "unknown"], limit=9))) == [1, 3]
    assert dibs.dequeue(queues=["unknown"]) == []
    assert sorted(_numbers(dibs.dequeue(limit=9))) == [0, 2]


def test_a_reserved_queue_is_served_only_by_those_who_name_it(dibs: Dibs) -> None:
    for queue in ("dibs.own", "mail"):
        dibs.enqueue("a", queue=queue)
    assert [job.queue for job in dibs.dequeue(limit=9)] == ["mail"]
    assert [job.queue for job in dibs.dequeue(["dibs.own"], limit=9)] == ["dibs.own"]


def test_a_claim_for_certain_tasks_leaves_the_others_untouched(dibs: Dibs) -> None:
    for n, task in enumerate(["a", "b", "a", "c"]):
        dibs.enqueue(task, {"n": n})
    assert _numbers(dibs.dequeue(tasks=["b", "c"], limit=9)) == [1, 3]
    assert dibs.dequeue(tasks=["unknown"]) == []
    assert [(job.payload["n"], job.attempts) for job in dibs.dequeue(limit=9)] == [(0, 1), (2, 1)]


@pytest.mark.parametrize("wrong", [{"queues": "mail"}, {"tasks": "mail"}])
def test_one_name_instead_of_a_list_is_refused(dibs: Dibs, wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="lists of names"):
        dibs.dequeue(**wrong)


@pytest.mark.parametrize("wrong", [{"queues": ["a b"]}, {"tasks": ["x;drop"]}, {"queues": ["mail\n"]}])
def test_an_impossible_name_is_refused(dibs: Dibs, wrong: Any) -> None:
    with pytest.raises(InvalidName):
        dibs.dequeue(**wrong)


def test_jobs_due_later_hide_none_that_are_due(timed: Dibs, clock: FakeClock) -> None:
    timed.enqueue_many([timed.job("mail", {"n": n}, priority=150, delay="1h") for n in range(500)])
    timed.enqueue("mail", {"n": -1}, priority=150)
    timed.enqueue("mail", {"n": -2}, priority=30)
    assert _numbers(timed.dequeue(limit=9)) == [-1, -2]
    clock.advance("1h")
    assert _numbers(timed.dequeue(limit=2)) == [0, 1]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(dibs: Dibs) -> None:
    for n, queue in enumerate(["a", "b", "a"]):
        dibs.enqueue("mail", {"n": n}, queue=queue)
    dibs.pause("a", "the printer burns")
    assert _numbers(dibs.dequeue(limit=9)) == [1]
    assert dibs.dequeue(queues=["a"]) == []
    assert dibs.dequeue(queues=["a"], tasks=["mail"]) == []
    dibs.enqueue("mail", {"n": 3}, queue="a")
    assert dibs.dequeue() == []
    dibs.resume("a")
    assert _numbers(dibs.dequeue(limit=9)) == [0, 2, 3]


def test_a_pause_does_not_touch_what_is_held(dibs: Dibs) -> None:
    handle = dibs.enqueue("mail")
    [job] = dibs.dequeue()
    dibs.pause("default")
    assert dibs.heartbeat(job)
    dibs.ack(job)
    assert handle.status() == "completed"


def test_queues_of_one_priority_take_turns(dibs: Dibs) -> None:
    dibs.enqueue_many([dibs.job("mail", {"n": n}, queue=queue) for n in range(20) for queue in ("a", "b", "c")])
    served = Counter(dibs.dequeue()[0].queue for _ in range(30))
    assert served == {"a": 10, "b": 10, "c": 10}


def test_a_held_job_is_not_given_to_anybody_else(dibs: Dibs, database: Database, dibs_on: Make) -> None:
    dibs.enqueue("mail")
    other = dibs_on(database.url)
    assert [len(dibs.dequeue(worker="w1")), len(dibs.dequeue(worker="w2")), len(other.dequeue())] == [1, 0, 0]


def test_workers_that_claim_at_once_get_different_jobs(database: Database, dibs_on: Make) -> None:
    producer = Dibs(database.url)
    producer.enqueue_many([producer.job("mail", {"n": n}) for n in range(400)])
    producer.close()
    start = Barrier(4)

    def drain(_number: int) -> list[int]:
        jobs = dibs_on(database.url)
        taken: list[int] = []
        start.wait()
        while found := jobs.dequeue(limit=7):
            taken += _numbers(found)
        jobs.close()
        return taken

    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(drain, range(4)))
    assert sorted(n for share in shares for n in share) == list(range(400))


def test_threads_that_share_one_object_get_different_jobs(dibs: Dibs) -> None:
    dibs.enqueue_many([dibs.job("mail", {"n": n}) for n in range(200)])
    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(lambda n: dibs.dequeue(limit=50, worker=f"w{n}"), range(4)))
    assert sorted(n for share in shares for n in _numbers(share)) == list(range(200))


def test_a_row_that_somebody_has_locked_is_stepped_over(server: Server, dibs_on: Make) -> None:
    jobs = dibs_on(server.url)
    handles = jobs.enqueue_many([jobs.job("mail", {"n": n}) for n in range(3)])
    with closing(server.connect()) as holder:
        holder.execute("begin")
        holder.execute(f"select id from {server.table('job')} where id = %s for update", (handles[0].id,))
        assert _numbers(jobs.dequeue(limit=1)) == [1]
        holder.execute("rollback")
    assert sorted(_numbers(jobs.dequeue()) + _numbers(jobs.dequeue())) == [0, 2]


def test_a_dequeue_waits_for_the_first_job_to_come(dibs: Dibs) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(dibs.dequeue, wait="30s")
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.05)
        handle = dibs.enqueue("mail")
        assert [job.id for job in waiting.result(timeout=5)] == [handle.id]


def test_a_dequeue_ends_its_wait_when_nothing_comes(dibs: Dibs) -> None:
    assert dibs.dequeue(wait=0.05) == []
    assert dibs.dequeue(wait="50ms") == []


def test_what_was_enqueued_a_moment_after_an_empty_answer_is_found(dibs: Dibs, database: Database) -> None:
    assert dibs.dequeue() == []
    dibs.enqueue("mail", {"n": 1}, queue="new")
    assert _numbers(dibs.dequeue()) == [1]
    database.query(
        f"insert into {database.table('job')} (queue, task, payload) values ('newer', 'mail', '{{\"n\":2}}')"
    )
    assert _numbers(dibs.dequeue()) == [2]


def test_a_child_process_opens_connections_of_its_own(dibs: Dibs, database: Database) -> None:
    dibs.enqueue("mail", {"n": 0})
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            dibs.enqueue("mail", {"n": 1})
            failed = 0
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0
    dibs.enqueue("mail", {"n": 2})
    assert _numbers(dibs.dequeue(limit=9)) == [0, 1, 2]
