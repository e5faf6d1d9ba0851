"""What belongs together is one transaction also on a caller's connection that has none: in autocommit mode."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import Any, cast

import pytest

from dibs import Dibs, Job, NewJob
from dibs.errors import Duplicate
from dibs.model.job import Enqueued
from dibs.store.enqueue import enqueue
from dibs.store.runner import Operation
from tests.conftest import MYSQL, POSTGRES
from tests.contract.conftest import _pairs
from tests.support.autocommit import ON_POSTGRES, ON_SQLITE, THAT_SURVIVE_A_CANCELLATION
from tests.support.callers import AsyncCaller, Caller
from tests.support.databases import Server
from tests.support.mysql_callers import AUTO_ON_MYSQL, AUTO_THAT_ARE_LOST_WITH_A_CANCELLATION
from tests.support.waiting import wait_until

ON_SERVERS = [
    *(pair for name in POSTGRES for pair in _pairs(name, ON_POSTGRES)),
    *(pair for name in MYSQL for pair in _pairs(name, AUTO_ON_MYSQL)),
]
AUTOCOMMIT = [*_pairs("sqlite", ON_SQLITE), *ON_SERVERS]
CANCELLED = [
    *(pair for name in POSTGRES for pair in _pairs(name, THAT_SURVIVE_A_CANCELLATION)),
    *(pair for name in MYSQL for pair in _pairs(name, AUTO_THAT_ARE_LOST_WITH_A_CANCELLATION)),
]
each_kind = pytest.mark.parametrize("caller", AUTOCOMMIT, indirect=True)


def _with_one_refused(dibs: Dibs) -> list[NewJob]:
    return [dibs.job("ship", {"order": 1}), dibs.job("ship", unique="taken", on_conflict="raise")]


@each_kind
def test_a_batch_of_which_one_job_is_refused_leaves_nothing_behind(dibs: Dibs, caller: Caller) -> None:
    dibs.enqueue("ship", unique="taken")
    with pytest.raises(Duplicate):
        caller.enqueue_many(dibs, _with_one_refused(dibs))
    assert dibs.count() == 1
    assert caller.enqueue(dibs, "ship", {"order": 2}).created
    assert dibs.count() == 2, "the connection is in no transaction again: this one is committed"


@each_kind
def test_a_batch_that_is_stored_is_committed(dibs: Dibs, caller: Caller) -> None:
    old = dibs.enqueue("ship", {"order": 1}, unique="key")
    keyed = dibs.job("ship", {"order": 2}, unique="key", on_conflict="replace")
    handles = caller.enqueue_many(dibs, [dibs.job("ship", delay="1h"), keyed])
    assert [handle.replaced for handle in handles] == [False, True]
    assert dibs.get(old.id).payload == {"order": 2}
    assert dibs.count() == 2


@pytest.mark.parametrize("caller", ON_SERVERS, indirect=True)
def test_nobody_takes_a_job_that_is_about_to_be_replaced(
    dibs: Dibs, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_at(*given: Any) -> Operation[Enqueued]:
        asked, reply = enqueue(*given), None
        with suppress(StopIteration):
            while True:
                request = asked.send(cast(Any, reply))
                taken.extend(dibs.dequeue() if request.name == "replace_waiting" else [])
                reply = yield request
        return Enqueued(old.id, False, True)

    taken: list[Job] = []
    old = caller.enqueue(dibs, "ship", {"order": 1}, unique="key")
    monkeypatch.setattr("dibs.store.enqueue.enqueue", looked_at)
    caller.enqueue(dibs, "ship", {"order": 2}, unique="key", on_conflict="replace")
    assert taken == []
    assert dibs.get(old.id).payload == {"order": 2}


@each_kind
def test_a_transaction_that_the_caller_has_begun_stays_the_callers(dibs: Dibs, caller: Caller) -> None:
    dibs.enqueue("ship", unique="taken")
    caller.execute("begin")
    caller.enqueue_many(dibs, [dibs.job("ship", delay="1h"), dibs.job("ship", unique="new")])
    with pytest.raises(Duplicate):
        caller.enqueue_many(dibs, _with_one_refused(dibs))
    assert dibs.count() == 1
    caller.execute("rollback")
    assert dibs.count() == 1


@pytest.mark.parametrize("caller", CANCELLED, indirect=True)
def test_a_batch_whose_task_is_cancelled_leaves_nothing_behind(dibs: Dibs, caller: AsyncCaller) -> None:
    database = cast("Server", caller.database)

    async def cancel_while_it_waits() -> None:
        batch = [dibs.job("ship", delay="1h"), dibs.job("ship", unique="held")]
        task = asyncio.create_task(dibs.aenqueue_many(batch, connection=caller.given))
        with ThreadPoolExecutor(1) as pool:
            waits = partial(wait_until, lambda: database.waiting_for_a_lock() == 1, "the batch to wait for the key")
            await asyncio.get_running_loop().run_in_executor(pool, waits)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The driver may still be telling the server to cancel, over a connection of its own.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    with closing(database.connect()) as other:
        other.execute("begin")
        dibs.enqueue("ship", unique="held", connection=other)
        caller.run(cancel_while_it_waits())
    assert dibs.count() == 0
    caller.connect_again_if_lost()
    assert caller.enqueue(dibs, "ship").created
    assert dibs.count() == 1
