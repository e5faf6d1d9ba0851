"""Deadlocks and waits of MySQL and MariaDB: played again where dibs owns the transaction, told where a caller does."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from dibs import Dibs
from dibs.errors import DatabaseError, DatabaseUnreachable
from dibs.store import access
from dibs.store import mysql as module
from dibs.store.runner import run
from tests.conftest import Make, server_url
from tests.support.mysql_database import Connection, Mysql, arguments
from tests.support.waiting import wait_until


def _ours_waits_for_b(jobs: Dibs, database: Mysql, pool: ThreadPoolExecutor) -> Future[Any]:
    """A batch of ours, which holds key a and waits for key b."""
    ours = pool.submit(jobs.enqueue_many, [jobs.job("mail", unique="a"), jobs.job("mail", unique="b")])
    wait_until(lambda: database.waiting_for_a_lock() == 1, "our batch to wait for key b")
    return ours


def test_a_deadlock_of_our_own_transaction_is_played_once_more(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    with ThreadPoolExecutor(1) as pool, closing(mysql.connect()) as other:
        other.execute("begin")
        jobs.enqueue_many([jobs.job("mail", queue="heavy") for _ in range(50)], connection=other)
        held = jobs.enqueue("mail", unique="b", connection=other)
        ours = _ours_waits_for_b(jobs, mysql, pool)
        jobs.enqueue("mail", unique="a", connection=other)  # now each waits for the other: the lighter one gives way
        other.execute("commit")
        handles = ours.result(timeout=30)
    assert [handle.created for handle in handles] == [False, False]
    assert handles[1].id == held.id
    assert jobs.count(queue="default") == 2


def test_a_deadlock_that_undoes_the_callers_transaction_is_told_with_that(mysql: Mysql, dibs_on: Make) -> None:
    """MySQL gives up the transaction that has done less, MariaDB the one that waits already: both are the caller's."""
    jobs = dibs_on(mysql.url)
    with ThreadPoolExecutor(1) as pool, closing(mysql.connect()) as caller, closing(mysql.connect()) as other:
        for connection in (caller, other):
            connection.execute("begin")
        jobs.enqueue("mail", unique="undone b", connection=caller)
        jobs.enqueue_many([jobs.job("mail", queue="heavy") for _ in range(50)], connection=other)
        jobs.enqueue("mail", unique="undone a", connection=other)
        waiting = pool.submit(jobs.enqueue, "mail", unique="undone a", connection=caller)
        wait_until(lambda: mysql.waiting_for_a_lock() == 1, "the caller to wait for key a")
        jobs.enqueue("mail", unique="undone b", connection=other)
        with pytest.raises(DatabaseError, match="rolling back this whole transaction") as raised:
            waiting.result(timeout=30)
        assert raised.value.remedy == "Begin the transaction again from its first statement."
        assert "1213" in str(raised.value.__cause__)
        other.execute("commit")
    assert jobs.count() == 52


def test_a_wait_of_ours_that_takes_too_long_is_begun_again(
    mysql: Mysql, dibs_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 1)
    played: list[Any] = []
    monkeypatch.setattr(access, "run", lambda *given: played.append(given) or run(*given))
    jobs = dibs_on(mysql.url)
    jobs.enqueue("mail")
    with ThreadPoolExecutor(1) as pool, closing(mysql.connect()) as other:
        other.execute("begin")
        held = jobs.enqueue("mail", unique="a", connection=other)
        played.clear()
        ours = pool.submit(jobs.enqueue, "mail", unique="a")
        wait_until(lambda: len(played) >= 2, "a second try")
        other.execute("commit")
        assert (ours.result(timeout=30).id, ours.result().created) == (held.id, False)


def test_a_wait_of_the_callers_that_takes_too_long_leaves_what_was_done_before(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    with closing(mysql.connect()) as other, closing(mysql.connect()) as caller:
        other.execute("begin")
        jobs.enqueue("mail", unique="waited for", connection=other)
        caller.execute("set session innodb_lock_wait_timeout = 1")
        caller.execute("begin")
        before = jobs.enqueue("mail", connection=caller)
        with pytest.raises(DatabaseError, match="is still there"):
            jobs.enqueue("mail", unique="waited for", connection=caller)
        caller.execute("commit")
        other.execute("rollback")
    assert [record.id for record in jobs.list()] == [before.id]


def test_a_row_that_changed_after_a_snapshot_is_told_where_the_server_minds(dibs_on: Make, open_database: Any) -> None:
    """MariaDB's innodb_snapshot_isolation, which is on from 11.6.2: error 1020 at REPEATABLE READ."""
    mariadb: Mysql = open_database("mariadb1011")
    jobs = dibs_on(mariadb.url)
    first = jobs.enqueue("mail", unique="a")
    with closing(mariadb.connect()) as caller:
        caller.execute("set session innodb_snapshot_isolation = on")
        caller.execute("set session transaction isolation level repeatable read")
        caller.execute("begin")
        caller.execute("select count(*) from dibs_job")
        jobs.reschedule(first.id, run_at="2200-01-01T00:00:00Z")
        with pytest.raises(DatabaseError, match="after this transaction had taken its snapshot"):
            jobs.enqueue("mail", unique="a", connection=caller)
        caller.execute("rollback")


def test_a_server_that_ends_every_connection_is_away_and_then_back(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    jobs.enqueue("mail")
    with ExitStack() as stack:
        admin = stack.enter_context(closing(Connection(**arguments(server_url(mysql.name)), autocommit=True)))
        name = mysql.url.rpartition("/")[2]
        admin.execute("create user dibs_away@'127.0.0.1' identified by 'x'")
        stack.callback(admin.execute, "drop user dibs_away@'127.0.0.1'")
        admin.execute(f"grant all on {name}.* to dibs_away@'127.0.0.1'")
        guest = dibs_on(mysql.url.replace("root:dibs@", "dibs_away:x@"))
        assert guest.count() == 1
        admin.execute("alter user dibs_away@'127.0.0.1' account lock")
        mysql.end_connections()
        with pytest.raises(DatabaseUnreachable):
            guest.dequeue()
        admin.execute("alter user dibs_away@'127.0.0.1' account unlock")
        assert len(guest.dequeue()) == 1
        guest.close()
