"""Jobs that are enqueued inside the caller's transaction, over every kind of connection."""

from __future__ import annotations

from dibs import Dibs
from tests.support.callers import Caller


def _orders(caller: Caller) -> int:
    return int(caller.database.query("select count(*) from orders")[0][0])


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
