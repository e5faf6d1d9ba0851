"""Traps of a claim that were measured elsewhere, shown to be real, and not to catch ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from dibs import Dibs
from dibs.model.lane import Lane
from dibs.store import claim as operations
from dibs.store.claim import START, Claimant
from tests.conftest import Make
from tests.support.databases import Postgres
from tests.support.waiting import wait_until

# The over-claim trap as it was measured: statistics taken while no row was pending, then 100 jobs arrive.
TRAP = """
create table j (id bigint primary key, queue text not null, status text not null, prio integer not null);
create index j_claim on j (queue, prio desc, id) where status = 'pending';
insert into j select n, 'q', 'done', 0 from generate_series(1, 1000) n;
analyze j;
insert into j select n, 'q', 'pending', 0 from generate_series(1001, 1100) n;
"""
CHOOSE = (
    "select id from j where queue = 'q' and status = 'pending' order by prio desc, id limit 2 for update skip locked"
)
FORMS = {
    "in": f"update j set status = 'processing' where status = 'pending' and id in ({CHOOSE})",
    "from": f"update j set status = 'processing' from ({CHOOSE}) s where j.id = s.id and j.status = 'pending'",
    "materialized": f"with c as materialized ({CHOOSE}) update j set status = 'x' where id in (select id from c)",
    "any array": f"update j set status = 'processing' where id = any (array({CHOOSE}))",
}


@pytest.fixture
def trapped(postgres: Postgres) -> Iterator[Postgres]:
    """A plain table in the state in which the trap snaps."""
    for statement in TRAP.strip().split(";\n"):
        postgres.query(statement)
    yield postgres
    postgres.query("drop table j")


def _claimed(database: Postgres, form: str) -> int:
    with closing(database.connect()) as connection:
        connection.execute("begin")
        count = connection.execute(FORMS[form].encode()).rowcount
        connection.execute("rollback")
    return count


@pytest.mark.parametrize("form", ["in", "from"])
def test_a_limited_subselect_joined_to_the_update_claims_the_whole_queue(trapped: Postgres, form: str) -> None:
    assert _claimed(trapped, form) == 100


@pytest.mark.parametrize("form", ["materialized", "any array"])
def test_a_limited_subselect_evaluated_once_claims_its_limit(trapped: Postgres, form: str) -> None:
    assert _claimed(trapped, form) == 2


def _fill_after_analyze(database: Postgres) -> None:
    """Statistics from the time when nothing could be claimed, then 100 jobs."""
    database.query("alter table dibs.job set (autovacuum_enabled = off)")
    database.query("insert into dibs.job (task, lease_until) select 'mail', now() from generate_series(1, 20000)")
    database.query("analyze dibs.job")
    database.query("delete from dibs.job")
    database.query("insert into dibs.job (task) select 'mail' from generate_series(1, 100)")


@pytest.fixture
def misled(postgres: Postgres) -> Iterator[Postgres]:
    """Our own table with statistics just as bad."""
    _fill_after_analyze(postgres)
    yield postgres
    postgres.query("alter table dibs.job reset (autovacuum_enabled)")


# With nested loops only, the joined forms fail on any table: the guard may not hang on the planner's mood.
@pytest.mark.parametrize("planner", ["", "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_material=off"])
@pytest.mark.parametrize("tasks", [None, ("mail",)], ids=["claim", "claim_tasks"])
def test_our_claim_takes_its_limit_whatever_the_statistics_say(
    misled: Postgres, dibs_on: Make, planner: str, tasks: tuple[str, ...] | None
) -> None:
    jobs = dibs_on(f"{misled.url}?options={planner}" if planner else misled.url)
    lane = Lane("default", 100)
    claimant = Claimant("w", tasks, 60_000_000)
    rows = jobs.store.call(lambda: operations.claim(jobs.store.dialect, lane, START, 2, claimant))
    assert len(rows) == 2
    assert misled.query("select count(*) from dibs.job where lease_until is not null") == [(2,)]


def test_a_claim_is_made_at_read_committed_whatever_the_default(postgres: Postgres, dibs_on: Make) -> None:
    """At REPEATABLE READ a claim fails with 40001 when a row has changed since its snapshot."""
    for level in ("repeatable read", "serializable"):
        jobs = dibs_on(f"{postgres.url}?options=-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}")
        with jobs.store.session() as (session, _):
            shown = session.connection.execute("show default_transaction_isolation").fetchone()
            session.begin()
            current = session.connection.execute("show transaction_isolation").fetchone()
            session.rollback()
        assert (shown, current) == ((level,), ("read committed",))


@pytest.mark.parametrize("level", ["repeatable\\ read", "serializable"])
def test_all_verbs_work_where_the_servers_default_isolation_is_higher(
    postgres: Postgres, dibs_on: Make, level: str
) -> None:
    jobs = dibs_on(f"{postgres.url}?options=-c default_transaction_isolation={level}")
    jobs.enqueue_many([jobs.job("mail", {"n": n}, unique=f"k{n}") for n in range(3)])
    first, second, third = jobs.dequeue(limit=3)
    assert jobs.heartbeat(first)
    jobs.ack(first)
    jobs.nack(second, "failed", retry_in=0)
    jobs.snooze(third, 0)
    assert jobs.cancel(third.id) == 1
    assert jobs.retry(third.id, first.id) == 2
    assert {job.id for job in jobs.dequeue(limit=9)} == {first.id, second.id, third.id}


def test_an_idle_dequeue_leaves_no_transaction_open(postgres: Postgres, dibs_on: Make) -> None:
    """An open transaction of ours would pin the horizon of the whole server."""
    jobs = dibs_on(postgres.url)
    jobs.enqueue("mail")
    jobs.ack(jobs.dequeue()[0])
    jobs.dequeue()
    states = postgres.query(
        "select state from pg_stat_activity"
        " where application_name = 'dibs' and state is not null and datname = current_database()"
    )
    assert {state for (state,) in states} == {"idle"}


def _updates(database: Postgres) -> tuple[int, int]:
    [row] = database.query(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relid = 'dibs.job'::regclass"
    )
    return row


def test_a_claim_writes_no_index_entry_and_no_new_page(postgres: Postgres, dibs_on: Make) -> None:
    """Heap-only updates: the page has room for the claimed version, whoever else keeps old ones alive."""
    jobs: Dibs = dibs_on(postgres.url)
    jobs.enqueue_many([jobs.job("mail", {"n": n, "text": "x" * 100}) for n in range(1_000)])
    before = _updates(postgres)
    for _ in range(10):
        assert len(jobs.dequeue(limit=100)) == 100
    jobs.close()  # a backend reports what it did when it ends
    wait_until(lambda: _updates(postgres)[0] - before[0] == 1_000, "the statistics of 1,000 updates")
    assert _updates(postgres)[1] - before[1] >= 900


@pytest.mark.parametrize("column", ["lease_until", "worker_id", "claimed_at", "started_at", "token", "attempts"])
def test_no_index_holds_what_a_claim_changes(postgres: Postgres, column: str) -> None:
    found = postgres.query("select indexdef from pg_indexes where schemaname = 'dibs' and tablename = 'job'")
    assert len(found) == 3
    assert not [definition for (definition,) in found if column in definition]
