"""Through a real transaction pooler with two connections: all works, and nothing needs or leaves state of a session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from dibs import Dibs
from tests.conftest import pooler_before
from tests.contract.scenario import tell
from tests.servers import PgbouncerServer
from tests.support.callers import ORDERS, Caller
from tests.support.clock import FakeClock
from tests.support.databases import Postgres, check_connections
from tests.support.pooler import ITS_OWN, THROUGH_A_POOLER, Pooled, console_of

SIZE = 2
"""Connections of the pool, for all who are in this file."""


@pytest.fixture(scope="module")
def pooler() -> Iterator[PgbouncerServer]:
    """PgBouncer in front of the run's PostgreSQL 18."""
    with pooler_before("postgres18", SIZE) as started:
        yield started


@pytest.fixture
def direct(pooler: PgbouncerServer, open_database: Callable[[str], Postgres]) -> Postgres:
    """The database behind the pooler; no test begins with connections that another one has used."""
    found = open_database("postgres18")
    with console_of(pooler) as console:
        database = urlsplit(found.url).path[1:]
        for verb in ("pause", "kill", "resume"):
            with contextlib.suppress(psycopg.OperationalError):  # it has not heard of this database yet
                console.execute(f"{verb} {database}".encode())
    return found


@pytest.fixture
def pooled(direct: Postgres, pooler: PgbouncerServer) -> Iterator[Pooled]:
    """The same database through the pooler. Its connections are asked at the end what they still hold."""
    found = Pooled(direct, pooler)
    try:
        yield found
        check_connections(found)
        _check_sessions(found)
    finally:
        found.close()
        direct.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid()"
        )


def _check_sessions(pooled: Pooled) -> None:
    """Nothing that outlives a transaction is left on any connection of the pool."""
    held = "select (select count(*) from pg_prepared_statements), (select count(*) from pg_listening_channels()),"
    held += " (select count(*) from pg_locks where locktype = 'advisory'), (select count(*) from pg_cursors)"
    changed = "select name from pg_settings where source = 'session'"
    temporary = "select count(*) from pg_class where relpersistence = 't'"
    processes = set()
    with contextlib.ExitStack() as stack:
        for session in [stack.enter_context(session) for session in pooled.sessions(SIZE)]:
            processes.add(session.execute("select pg_backend_pid()").fetchone())
            assert session.execute(held).fetchone() == (0, 0, 0, 0)
            assert {name for (name,) in session.execute(changed.encode()).fetchall()} <= ITS_OWN
            assert session.execute(temporary).fetchone() == (0,)
    assert len(processes) == SIZE


@pytest.fixture
def jobs(pooled: Pooled, dibs_on: Callable[..., Dibs]) -> Dibs:
    """Jobs through the pooler."""
    return dibs_on(pooled.url)


def test_every_verb_does_the_same_as_without_a_pooler(
    pooled: Pooled, direct: Postgres, dibs_on: Callable[..., Dibs]
) -> None:
    told = []
    for url in (direct.url, pooled.url):
        clock = FakeClock()
        jobs = dibs_on(url, clock=clock)
        told.append(tell(jobs, "story", clock))
        jobs.cancel(queue="story")
        direct.empty()
        jobs.close()
    assert told[0] == told[1]


def test_jobs_come_in_one_by_one_many_at_once_in_bulk_and_by_a_unique_key(jobs: Dibs) -> None:
    jobs.enqueue("one")
    first, second = (jobs.enqueue("unique", unique="key") for _ in range(2))
    assert (first.id, first.created, second.created) == (second.id, True, False)
    jobs.enqueue_many([jobs.job("many", {"n": n}, unique=f"many-{n}") for n in range(5)])
    jobs.enqueue_many([jobs.job("bulk", {"n": n}) for n in range(2_000)])
    held = [job for _ in range(3) for job in jobs.dequeue(limit=1_000, lease="1m")]
    assert sorted({job.task for job in held}) == ["bulk", "many", "one", "unique"]
    assert len(held) == 2_007
    one, two, three, *rest = held
    assert jobs.heartbeat(one, "5m")
    jobs.ack(one)
    jobs.nack(two, "no")
    jobs.snooze(three, "1m")
    assert jobs.ack_many(rest) == []
    counts = [jobs.count(status=status) for status in ("completed", "retrying", "scheduled")]
    assert counts == [2_005, 1, 1]


def test_a_worker_of_sixteen_slots_runs_five_hundred_jobs(jobs: Dibs, pooled: Pooled, direct: Postgres) -> None:
    @jobs.task
    def plain(n: int) -> int:
        return n

    @jobs.task
    async def on_the_loop(n: int) -> int:
        return n

    handles = jobs.enqueue_many([task.job(n) for n in range(250) for task in (plain, on_the_loop)])
    assert jobs.worker(concurrency=16).run(until_empty=True) == 500
    assert sorted(handle.result(timeout=0) for handle in handles) == sorted([*range(250), *range(250)])
    on_server = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    assert int(direct.query(on_server)[0][0]) <= SIZE + 1  # and the harness's own


def test_a_worker_without_work_finds_a_job_by_polling(jobs: Dibs) -> None:
    @jobs.task
    def double(n: int) -> int:
        return 2 * n

    with jobs.worker(concurrency=16):
        assert [double.enqueue(n).result(timeout=20) for n in range(3)] == [0, 2, 4]


def test_more_producers_than_connections_wait_for_each_other(jobs: Dibs) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: jobs.enqueue("one", {"n": n}), range(200)))
    assert jobs.count(status="ready") == 200


def test_tables_are_made_through_a_pooler(pooler: PgbouncerServer, direct: Postgres, dibs_on: Any) -> None:
    name = f"{urlsplit(direct.url).path[1:]}_new"
    direct.query(f"create database {name}")
    try:
        made = dibs_on(f"{pooler.url(name)}?pooler=transaction")
        assert made.migrate()
        made.check_schema()
        assert made.enqueue("one").status() == "ready"
        made.close()
    finally:
        direct.query(f"drop database {name} with (force)")


def test_a_pooler_is_noticed_that_the_url_does_not_mention(pooled: Pooled, direct: Postgres, dibs_on: Any) -> None:
    seen = [dibs_on(url).behind_pooler() for url in (pooled.plain_url, pooled.url, direct.url)]
    assert seen == [True, False, False]


@pytest.fixture(params=THROUGH_A_POOLER, ids=lambda kind: kind.__name__)
def caller(request: pytest.FixtureRequest, pooled: Pooled) -> Iterator[Caller]:
    """A caller who has come through the pooler too."""
    pooled.query(ORDERS)
    made = request.param(pooled)
    yield made
    made.rollback()
    made.close()
    pooled.query("drop table orders")


def test_callers_enqueue_in_their_transactions(jobs: Dibs, caller: Caller) -> None:
    for ending, left in ((caller.rollback, 0), (caller.commit, 1_204)):
        caller.execute("insert into orders values (1)")
        for n in range(101):  # also past the fifth time, when psycopg would prepare
            caller.enqueue(jobs, "ship", {"order": n})
        caller.enqueue(jobs, "ship", unique="order-1")
        assert not caller.enqueue(jobs, "ship", unique="order-1").created
        caller.enqueue_many(jobs, [jobs.job("ship", unique=f"key-{n}") for n in range(102)])
        caller.enqueue_many(jobs, [jobs.job("ship", {"order": n}) for n in range(1_000)])
        assert jobs.count() == 0
        ending()
        assert jobs.count() == left
        assert caller.database.query("select count(*) from orders") == [(left and 1,)]
