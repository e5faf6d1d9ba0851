"""Jobs that are enqueued inside the caller's transaction, over every kind of connection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from dibs import Dibs, NewJob
from dibs.errors import Duplicate
from dibs.store.statement import sql
from tests.contract.conftest import POSTGRES_CALLERS
from tests.support.callers import Caller


def _orders(caller: Caller) -> int:
    return int(caller.database.query("select count(*) from orders")[0][0])


def _batch(dibs: Dibs) -> list[NewJob]:
    """Jobs of every kind that a bulk load must store."""
    later = datetime.now(UTC) + timedelta(hours=1)
    return [
        dibs.job("ship", {"order": 1, "text": 'tab\t, "quoted", back\\slash, ünïcode 船'}),
        dibs.job("ship", {"order": 2}, delay="1h"),
        dibs.job("ship", {"order": 3}, run_at=later, tags=["slow"]),
        dibs.job("ship", {"order": 4}, unique="order-4"),
        dibs.job("ship", None, queue="other", priority=-3, max_attempts=1),
    ]


def test_a_job_is_seen_only_after_the_callers_commit(dibs: Dibs, caller: Caller) -> None:
    caller.execute("insert into orders values (1)")
    handle = caller.enqueue(dibs, "ship", {"order": 1})
    assert caller.database.count("job") == 0
    assert dibs.dequeue() == []
    caller.commit()
    assert _orders(caller) == 1
    [job] = dibs.dequeue()
    assert (job.id, job.task, job.payload) == (handle.id, "ship", {"order": 1})


def test_a_rollback_takes_job_and_business_write_together(dibs: Dibs, caller: Caller) -> None:
    caller.execute("insert into orders values (1)")
    caller.enqueue(dibs, "ship", {"order": 1})
    caller.rollback()
    assert (_orders(caller), caller.database.count("job")) == (0, 0)
    assert dibs.dequeue() == []


def test_every_option_is_kept_when_given_in_a_transaction(dibs: Dibs, caller: Caller) -> None:
    options = {"queue": "mail", "priority": 7, "max_attempts": 2, "tags": ["a", "b"], "unique": "key", "delay": "1h"}
    handle = caller.enqueue(dibs, "ship", {"order": 1}, **options)
    caller.commit()
    found = dibs.get(handle.id)
    assert (found.queue, found.priority, found.max_attempts, found.tags) == ("mail", 7, 2, ("a", "b"))
    assert (found.unique_key, found.status) == ("key", "scheduled")
    assert found.available_at is not None
    assert abs(found.available_at - found.created_at - timedelta(hours=1)) < timedelta(seconds=1)


def test_many_jobs_of_every_kind_come_and_go_with_the_transaction(dibs: Dibs, caller: Caller) -> None:
    caller.enqueue_many(dibs, _batch(dibs))
    caller.rollback()
    assert caller.database.count("job") == 0
    batch = _batch(dibs)
    handles = caller.enqueue_many(dibs, batch)
    caller.commit()
    assert [handle.created for handle in handles] == [True] * len(batch)
    found = [dibs.get(handle.id) for handle in handles]
    assert [record.status for record in found] == ["ready", "scheduled", "scheduled", "ready", "ready"]
    assert [record.payload.get("order") for record in found] == [1, 2, 3, 4, None]
    assert found[0].payload["text"] == 'tab\t, "quoted", back\\slash, ünïcode 船'
    assert (found[2].tags, found[3].unique_key) == (("slow",), "order-4")
    assert (found[4].queue, found[4].priority, found[4].max_attempts) == ("other", -3, 1)


def test_a_plain_bulk_load_comes_with_the_transaction(dibs: Dibs, caller: Caller) -> None:
    handles = caller.enqueue_many(dibs, [dibs.job("ship", {"order": n}) for n in range(1_000)])
    assert caller.database.count("job") == 0
    caller.commit()
    assert [job.id for job in dibs.dequeue(limit=1_000)] == [handle.id for handle in handles]


def test_an_empty_bulk_load_stores_nothing(dibs: Dibs, caller: Caller) -> None:
    assert caller.enqueue_many(dibs, []) == []
    caller.commit()
    assert caller.database.count("job") == 0


def test_a_key_taken_earlier_in_the_same_transaction_is_found(dibs: Dibs, caller: Caller) -> None:
    first = caller.enqueue(dibs, "ship", {"order": 1}, unique="order-1")
    second = caller.enqueue(dibs, "ship", {"order": 1}, unique="order-1")
    assert (second.id, second.created) == (first.id, False)
    caller.commit()
    assert caller.database.count("job") == 1


def test_a_refused_key_leaves_the_callers_transaction_usable(dibs: Dibs, caller: Caller) -> None:
    first = caller.enqueue(dibs, "ship", unique="order-1")
    with pytest.raises(Duplicate, match=first.id):
        caller.enqueue(dibs, "ship", unique="order-1", on_conflict="raise")
    caller.execute("insert into orders values (1)")
    caller.commit()
    assert (_orders(caller), caller.database.count("job")) == (1, 1)


@pytest.mark.parametrize("caller", POSTGRES_CALLERS, indirect=True)
def test_sleepers_are_rung_only_after_the_commit(dibs: Dibs, caller: Caller) -> None:
    _fall_asleep(dibs)
    with psycopg.connect(caller.database.url, autocommit=True) as listener:
        listener.execute("listen dibs")
        caller.enqueue(dibs, "ship")
        caller.enqueue_many(dibs, [dibs.job("ship"), dibs.job("ship")])
        listener.execute("select 1")
        assert list(listener.notifies(timeout=0)) == []
        caller.commit()
        assert [notice.channel for notice in listener.notifies(timeout=10, stop_after=1)] == ["dibs"]
        listener.execute("unlisten *")
        assert list(listener.notifies(timeout=0)) == []  # coalesced: three jobs, one ring


def _fall_asleep(dibs: Dibs) -> None:
    presence = {"id": "w", "host": "h", "pid": 1, "version": "1", "queues": None, "concurrency": 1, "running": 0}

    def sleep():
        yield sql("worker_beat", **presence, state="running")
        yield sql("worker_sleep", id="w", span=60_000_000)

    dibs.store.call(sleep)
