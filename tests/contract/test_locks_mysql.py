"""What MySQL and MariaDB lock: the traps that were measured elsewhere, shown to be real, and not to catch ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from dibs import Dibs
from dibs.model.identity import NIL
from dibs.model.lane import Lane
from dibs.model.options import OnConflict
from dibs.model.outcome import Final
from dibs.store import claim as operations
from dibs.store import reap
from dibs.store.claim import START, Claimant
from dibs.store.runner import Operation
from dibs.store.settle import settle
from dibs.store.statement import ATOMIC
from tests.conftest import Make
from tests.support.mysql_database import Connection, Mysql
from tests.support.waiting import wait_until

LANE = Lane("default", 100)
LEVELS = ["read committed", "repeatable read"]


@contextmanager
def _held_open(jobs: Dibs, *made: Operation[Any]) -> Iterator[list[Any]]:
    """The statements of operations on a connection of dibs' own, whose transaction is open until the block ends."""
    with jobs.store.session() as (session, _):
        session.begin()
        answers: list[Any] = []
        try:
            for operation in made:
                reply: Any = None
                try:
                    while True:
                        request = operation.send(reply)
                        reply = [] if request is ATOMIC else session.execute(request)
                except StopIteration as done:
                    answers.append(done.value)
            yield answers
        finally:
            session.rollback()


def _claim(jobs: Dibs, limit: int, tasks: tuple[str, ...] | None = None) -> Operation[Any]:
    return operations.claim(jobs.store.dialect, LANE, START, limit, Claimant("w", tasks, 60_000_000))


def _row_locks(database: Mysql) -> int:
    """Entries of indexes that the transactions of this database hold locked."""
    [(_, _, told)] = database.query("show engine innodb status")
    ours = {row[0] for row in database.query(f"select id from {database.sessions} where db = database()")}
    held = 0
    for part in told.split("---TRANSACTION"):
        thread, locks = re.search(r"thread id (\d+)", part), re.search(r"(\d+) row lock\(s\)", part)
        if thread and locks and int(thread[1]) in ours:
            held += int(locks[1])
    return held


@pytest.mark.parametrize("tasks", [None, ("mail",)], ids=["claim", "claim_tasks"])
def test_a_claim_of_two_locks_two_rows_and_a_second_worker_gets_two_others(
    mysql: Mysql, dibs_on: Make, tasks: tuple[str, ...] | None
) -> None:
    jobs, others = dibs_on(mysql.url), dibs_on(mysql.url)
    handles = jobs.enqueue_many([jobs.job("mail", {"n": n}) for n in range(100)])
    with _held_open(jobs, _claim(jobs, 2, tasks)) as [first]:
        assert _row_locks(mysql) == 4  # two entries of the lane's index, and the two rows
        if mysql.dialect == "mysql":
            locks = Counter(
                mysql.query(
                    "select index_name, lock_mode from performance_schema.data_locks"
                    " where object_schema = database() and lock_type = 'RECORD'"
                )
            )
            assert locks == {("dibs_job_lane", "X,REC_NOT_GAP"): 2, ("PRIMARY", "X,REC_NOT_GAP"): 2}
        with _held_open(others, _claim(others, 2, tasks)) as [second]:
            taken = [row[0] for row in (*first, *second)]
    assert taken == [handle.id for handle in handles[:4]]
    assert len(jobs.dequeue(limit=200)) == 100


def _s4_dequeue(limit: int) -> str:
    """The dequeue of document S4, on its index: the order asked for is not the index's."""
    return (
        "select id from s4 where queue_name in ('q') and available_at <= utc_timestamp() and lease_until is null"
        f" order by priority desc, available_at, id limit {limit} for update skip locked"
    )


@pytest.fixture
def s4(mysql: Mysql) -> Iterator[Mysql]:
    """The table of document S4 with a hundred jobs."""
    mysql.query(
        "create table s4 (id bigint primary key auto_increment, queue_name varchar(64), available_at datetime(6),"
        " priority int, lease_until datetime(6), key s4_sched (queue_name, available_at, priority desc, id))"
    )
    rows = ", ".join("('q', '2020-01-01', 0)" for _ in range(100))
    mysql.query(f"insert into s4 (queue_name, available_at, priority) values {rows}")
    yield mysql
    mysql.query("drop table s4")


@pytest.mark.parametrize("level", LEVELS)
def test_a_claim_whose_order_no_index_serves_locks_the_whole_queue(s4: Mysql, level: str) -> None:
    with closing(s4.connect()) as first, closing(s4.connect()) as second:
        for connection in (first, second):
            connection.execute(f"set session transaction isolation level {level}")
            connection.execute("begin")
        assert len(first.execute(_s4_dequeue(1)).fetchall()) == 1
        assert _row_locks(s4) >= 100
        assert list(second.execute(_s4_dequeue(1)).fetchall()) == []


@contextmanager
def _producer(database: Mysql, level: str) -> Iterator[Connection]:
    """A caller in a transaction at an isolation level, who waits for a lock for a second at most."""
    with closing(database.connect()) as connection:
        connection.execute("set session innodb_lock_wait_timeout = 1")
        connection.execute(f"set session transaction isolation level {level}")
        connection.execute("begin")
        yield connection


def test_a_claim_at_repeatable_read_that_finds_nothing_keeps_producers_from_inserting(mysql: Mysql) -> None:
    with closing(mysql.connect()) as poller, _producer(mysql, "read committed") as producer:
        poller.execute("set session transaction isolation level repeatable read")
        poller.execute("begin")
        poller.execute(
            "select id from dibs_job force index (dibs_job_lane) where queue = 'default' and priority = 100"
            " and available_at <= utc_timestamp(6) order by available_at, id limit 2 for update skip locked"
        )
        with pytest.raises(pymysql.err.OperationalError, match="1205"):
            producer.execute("insert into dibs_job (task) values ('mail')")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("state", ["empty", "due later", "held"])
def test_an_idle_poll_never_keeps_a_producer_waiting(mysql: Mysql, dibs_on: Make, level: str, state: str) -> None:
    jobs = dibs_on(mysql.url)
    jobs.enqueue("mail", queue="other")
    if state != "empty":
        jobs.enqueue_many([jobs.job("mail", delay="1h" if state == "due later" else 0) for _ in range(20)])
        jobs.dequeue(limit=20)
    polls = (
        _claim(jobs, 10),
        _claim(jobs, 10, ("mail",)),
        operations.peek(jobs.store.dialect, [LANE], [START]),
        operations.known_lanes(None),
        operations.discover_lanes(),
        reap.walk("default", 100, (0, NIL)),
        reap.take_back(jobs.store.dialect, [NIL]),
    )
    with _held_open(jobs, *polls), _producer(mysql, level) as producer:
        jobs.enqueue("mail", connection=producer)
        jobs.enqueue("mail", connection=producer, delay="30m")
        jobs.enqueue("mail", connection=producer, unique="key")
        jobs.enqueue_many([jobs.job("mail", queue="new"), jobs.job("mail", delay="2h")], connection=producer)
        producer.execute("commit")
    assert jobs.count() >= 5


def test_a_producer_with_an_old_snapshot_gets_the_id_of_a_duplicate(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    with _producer(mysql, "repeatable read") as producer:
        assert producer.execute("select count(*) from dibs_job").fetchall()[0] == (0,)
        holder = jobs.enqueue("mail", {"n": 1}, unique="key")
        again = jobs.enqueue("mail", {"n": 2}, unique="key", connection=producer)
        many = jobs.enqueue_many([jobs.job("mail", unique="key")], connection=producer)
        assert producer.execute("select count(*) from dibs_job").fetchall()[0] == (0,), "the snapshot is still old"
        replaced = jobs.enqueue("mail", {"n": 3}, unique="key", on_conflict="replace", connection=producer)
        producer.execute("commit")
    assert [(handle.id, handle.created) for handle in (again, *many, replaced)] == [(holder.id, False)] * 3
    assert jobs.get(holder.id).payload == {"n": 3}


@pytest.mark.parametrize("level", LEVELS)
def test_an_insert_that_meets_a_duplicate_locks_what_stands_beside_it(mysql: Mysql, level: str) -> None:
    mysql.query("insert into dibs_job (task, unique_key) values ('mail', 'a')")
    with _producer(mysql, level) as first, _producer(mysql, level) as second:
        first.execute(
            "insert into dibs_job (task, unique_key) values ('mail', 'a')"
            " on duplicate key update unique_key = dibs_job.unique_key"
        )
        with pytest.raises(pymysql.err.OperationalError, match="1205"):
            second.execute("insert into dibs_job (task) values ('mail')")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("conflict", ["existing", "replace"])
def test_a_key_that_is_taken_or_new_keeps_no_other_producer_waiting(
    mysql: Mysql, dibs_on: Make, level: str, conflict: OnConflict
) -> None:
    jobs = dibs_on(mysql.url)
    fresh = f"{level} {conflict} "  # a deleted key locks its place until the server has purged it
    jobs.enqueue_many([jobs.job("mail", unique=fresh + key) for key in ("b", "m")])
    with _producer(mysql, level) as first, _producer(mysql, level) as second:
        for key in ("b", "m", "z"):
            jobs.enqueue("mail", unique=fresh + key, on_conflict=conflict, connection=first)
        jobs.enqueue("mail", connection=second)
        made = [jobs.enqueue("mail", unique=fresh + key, connection=second) for key in ("a", "c", "n", "zz")]
        assert all(handle.created for handle in made)
        for connection in (first, second):
            connection.execute("commit")
    assert jobs.count() == 8


def test_settles_in_opposite_order_do_not_wait_for_each_other(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    first, second = sorted(handle.id for handle in jobs.enqueue_many([jobs.job("mail"), jobs.job("mail")]))
    jobs.dequeue(limit=2)

    def ended(*ids: str) -> Operation[set[str]]:
        return settle(jobs.store.dialect, [Final(job_id, 1, "completed") for job_id in ids], {})

    with ThreadPoolExecutor(1) as pool:
        with _held_open(jobs, ended(first)):
            waiting = pool.submit(jobs.store.call, lambda: ended(second, first))
            wait_until(lambda: mysql.waiting_for_a_lock() == 1, "the batch to wait for its first row")
            with closing(mysql.connect()) as other:  # it holds the second one only if it took it first
                found = other.execute(f"select id from dibs_job where id = '{second}' for update skip locked")
                assert list(found.fetchall()) == [(second,)]
        assert waiting.result(timeout=10) == set()
    assert jobs.count(status="completed") == 2
