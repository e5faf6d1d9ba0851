"""Hot statements read what they need and no more, whatever the statistics say and however much is waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from dibs import Dibs
from dibs.model.identity import NIL
from dibs.model.lane import Lane
from dibs.model.outcome import Back, Final
from dibs.store import claim, reap
from dibs.store.claim import START, Claimant
from dibs.store.jobs import Filter, find, run_now
from dibs.store.queues import counts, prune
from dibs.store.settle import beat, settle
from tests.conftest import POSTGRES, Make, server_url
from tests.support.databases import Database, Postgres, fresh_postgres
from tests.support.explain import Plan, explain

BATCH = 50
LANE = Lane("default", 100)
LEASE = 60_000_000

# 10,000 ready, 10,000 due later at a higher priority, 1,000 held, 10,000 finished with an error each.
FILL = """
insert into dibs.job (task, payload) select 'mail', '{"text": "some payload"}' from generate_series(1, 10000);
insert into dibs.job (task, priority, available_at)
    select 'mail', 150, now() + n * interval '1 second' from generate_series(100, 10100) n;
insert into dibs.job (task, queue, lease_until, worker_id, token, attempts, claimed_at)
    select 'mail', 'held', now() + interval '1 hour', 'w', 1, 1, now() from generate_series(1, 1000);
insert into dibs.history (id, finished_at, created_at, token, priority, attempts, crashes, queue, task, outcome,
                          payload)
    select dibs.new_id(), now() - n * interval '1 second', now(), 1, 100, 1, 0, 'default', 'mail', 'completed', '{}'
      from generate_series(1, 10000) n;
insert into dibs.attempt_error (job_id, token, attempt, kind, at, error)
    select id, 1, 1, 'error', now(), '{}' from dibs.history
"""
LITTLE = "insert into dibs.job (task, queue, lease_until) select 'x', 'other', now() from generate_series(1, 3)"
TABLES = ("dibs.job", "dibs.history_rest", "dibs.attempt_error")
ANALYZE = "analyze dibs.job;\nanalyze dibs.history_rest;\nanalyze dibs.attempt_error"
STATISTICS = {
    "none": (FILL,),
    "empty": (ANALYZE, FILL),
    "stale": (LITTLE, ANALYZE, FILL),
    "huge": (FILL, ANALYZE),
}
"""What was analysed when: never, while the tables were empty, while they held something else, or now."""


@pytest.fixture(scope="session")
def prepared(worker_id: str) -> Iterator[Callable[[str, str], Postgres]]:
    """A database of 31,000 rows for each server and each state of its statistics; tests only look at it."""
    made: dict[tuple[str, str], Postgres] = {}
    with ExitStack() as stack:

        def prepare(server: str, state: str) -> Postgres:
            if (server, state) not in made:
                url = server_url(server)
                database = stack.enter_context(fresh_postgres(server, url, f"{state}_{worker_id}"))
                made[server, state] = database
                for table in TABLES:
                    database.query(f"alter table {table} set (autovacuum_enabled = off)")
                for script in STATISTICS[state]:
                    for statement in script.split(";\n"):
                        database.query(statement)
            return made[server, state]

        yield prepare


@pytest.fixture(params=[(server, state) for server in POSTGRES for state in STATISTICS], ids="-".join)
def filled(request: pytest.FixtureRequest, prepared: Callable[[str, str], Postgres]) -> Postgres:
    """A server with statistics that know of everything, of nothing, or of something else."""
    return prepared(*request.param)


@pytest.fixture(params=["custom", "generic"])
def planned(request: pytest.FixtureRequest, filled: Postgres, dibs_on: Make) -> Callable[..., Plan]:
    """The plan of one statement of an operation, made for its parameters or for any."""
    options = "" if request.param == "custom" else "?options=-c plan_cache_mode=force_generic_plan"
    jobs = dibs_on(f"{filled.url}{options}")

    def plan(name: str, operation: Callable[[Dibs], Any]) -> Plan:
        return explain(jobs, operation(jobs))[name]

    return plan


def _held(database: Postgres) -> list[str]:
    return [row[0] for row in database.query(f"select id::text from dibs.job where queue = 'held' limit {BATCH}")]


def _check(plan: Plan, index: str, pages: int = 30 * BATCH) -> None:
    """The index is used, nothing is read from end to end, no backlog is sorted, few rows and pages are touched."""
    assert index in plan.indexes()
    assert plan.scanned() & {"job", "history", "history_rest", "attempt_error"} == set()
    assert plan.sorted() <= 2 * BATCH
    assert plan.read() <= 10 * BATCH
    assert plan.pages() <= pages


@pytest.mark.parametrize("tasks", [None, ("mail",)], ids=["claim", "claim_tasks"])
def test_a_claim_reads_and_locks_its_batch(planned: Callable[..., Plan], tasks: tuple[str, ...] | None) -> None:
    claimant = Claimant("w", tasks, LEASE)
    name = "claim" if tasks is None else "claim_tasks"
    plan = planned(name, lambda jobs: claim.claim(jobs.store.dialect, LANE, START, BATCH, claimant))
    _check(plan, "job_lane")
    locked = [node["Actual Rows"] for node in plan.nodes() if node["Node Type"] == "LockRows"]
    assert locked == [BATCH]


def test_a_claim_of_a_lane_due_later_reads_nothing_of_it(planned: Callable[..., Plan]) -> None:
    claimant, later = Claimant("w", None, LEASE), Lane("default", 150)
    plan = planned("claim", lambda jobs: claim.claim(jobs.store.dialect, later, START, BATCH, claimant))
    assert plan.read() <= 2
    assert plan.pages() <= 10


def test_a_peek_looks_each_lane_up(planned: Callable[..., Plan]) -> None:
    lanes = [Lane("default", 100), Lane("default", 150), Lane("nothing", 100)]
    plan = planned("peek", lambda jobs: claim.peek(jobs.store.dialect, lanes, [START] * len(lanes)))
    _check(plan, "job_lane", pages=60)
    assert plan.read() <= 12


def test_new_lanes_are_found_by_hopping(planned: Callable[..., Plan]) -> None:
    plan = planned("discover_lanes", lambda _jobs: claim.discover_lanes())
    _check(plan, "job_lane", pages=60)


@pytest.mark.parametrize("kind", ["archive", "put_back", "beat", "lock_expired"])
def test_what_is_held_is_found_by_its_id(planned: Callable[..., Plan], filled: Postgres, kind: str) -> None:
    ids = _held(filled)
    attempts = dict.fromkeys(ids, (1, "w"))
    operations: dict[str, Callable[[Dibs], Any]] = {
        "archive": lambda jobs: settle(jobs.store.dialect, [Final(i, 1, "completed", "{}") for i in ids], attempts),
        "put_back": lambda jobs: settle(jobs.store.dialect, [Back(i, 1, 0) for i in ids], attempts),
        "beat": lambda jobs: beat(jobs.store.dialect, [(i, 1, 0) for i in ids], LEASE),
        "lock_expired": lambda jobs: reap.take_back(jobs.store.dialect, ids),
    }
    _check(planned(kind, operations[kind]), "job_pkey")


def test_a_settle_that_is_repeated_finds_its_history_by_id(planned: Callable[..., Plan], filled: Postgres) -> None:
    rows = filled.query(f"select id::text from dibs.history limit {BATCH}")
    finals = [Final(row[0], 1, "completed") for row in rows]
    plan = planned("settled_by", lambda jobs: settle(jobs.store.dialect, finals, {}))
    _check(plan, "history_rest_pkey")


def test_a_walk_reads_one_stretch_of_a_lane(planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reap, "STRETCH", BATCH)
    plan = planned("walk", lambda _jobs: reap.walk("default", 100, (0, NIL)))
    _check(plan, "job_lane")


def test_a_prune_looks_the_errors_up_that_it_forgets(planned: Callable[..., Plan]) -> None:
    plan = planned("prune", lambda jobs: prune(jobs.store.dialect, "default", ["completed"], 3_600_000_000, BATCH))
    assert "attempt_error_pkey" in plan.indexes()
    assert plan.scanned() & {"job", "attempt_error"} == set()
    assert plan.sorted() == 0


def test_dead_jobs_are_counted_along_the_newest_failures(
    planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.store.queues.COUNT_CAP", BATCH)
    plan = planned("count_dead", lambda _jobs: counts(3_600_000_000))
    assert "attempt_error_pkey" in plan.indexes()
    _check(plan, "history_rest_pkey")


def test_a_page_of_jobs_is_read_along_their_ids(filled: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(filled.url)
    plans = explain(jobs, find(jobs.store.dialect, Filter(), BATCH))
    _check(plans["list_live"], "job_pkey")
    _check(plans["list_finished"], "history_rest_pkey")


def test_waiting_jobs_are_moved_by_their_id(planned: Callable[..., Plan], filled: Postgres) -> None:
    ids = _held(filled)
    _check(planned("run_now", lambda jobs: run_now(jobs.store.dialect, ids)), "job_pkey")


def test_the_mark_steps_over_what_an_old_snapshot_keeps(postgres: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(postgres.url)
    jobs.enqueue_many([jobs.job("mail", {"n": n}) for n in range(6_000)])
    with closing(postgres.connect()) as reader:
        reader.execute("begin isolation level repeatable read")
        reader.execute("select 1")
        lane = Lane("default", 100)
        for _ in range(5):
            held = jobs.dequeue(limit=1_000)
            lane.claimed([job.row for job in held])
            assert jobs.ack_many(held) == []
        claimant = Claimant("w", None, LEASE)
        mark = (lane.mark_at, lane.mark_id)
        stepped = explain(jobs, claim.claim(jobs.store.dialect, lane, mark, BATCH, claimant))["claim"]
        walked = explain(jobs, claim.claim(jobs.store.dialect, lane, START, BATCH, claimant))["claim"]
        reader.execute("rollback")
    assert stepped.pages() <= 8 * BATCH
    assert walked.pages() - stepped.pages() >= 5 * BATCH


# SQLite: what may be read from end to end, and why that is bounded.
MAY_SCAN = {
    "discover_lanes": "the first entry of the index",
    "lanes": "a row for each lane",
    "settings": "a row for each configured queue",
    "workers": "a row for each worker",
    "forget_workers": "a row for each worker",
    "queues": "dibs_queue; the jobs' queues by hopping along the index",
    "count_live": "at most :cap rows",
    "count_jobs": "counting",
    "count_finished": "at most :cap rows",
    "count_dead": "at most :cap rows along the primary key",
    "list_live": "pages along the primary key",
    "list_finished": "pages along the primary key",
}
MAY_SORT = {"count_live", "count_finished", "count_dead", "workers", "queues", "walk"}


def test_no_statement_for_sqlite_reads_a_table_or_sorts_unless_it_is_bounded(sqlite: Database, dibs_on: Make) -> None:
    jobs = dibs_on(sqlite.url)
    with closing(sqlite.connect()) as connection:
        for name, block in jobs.store.dialect.blocks.items():
            values = dict.fromkeys({*block.parameters, "found"})
            texts = [part.compiled("named")[0] for part in block.parts]
            steps = [row[3] for text in texts for row in connection.execute(f"explain query plan {text}", values)]
            scans = {step for step in steps if step.startswith("SCAN dibs_") or step in ("SCAN j", "SCAN h")}
            sorts = {step for step in steps if "TEMP B-TREE" in step}
            assert not scans or name in MAY_SCAN, (name, steps)
            assert not sorts or name in MAY_SORT, (name, steps)


def test_a_claim_on_sqlite_searches_its_lane_and_nothing_else(sqlite: Database, dibs_on: Make) -> None:
    jobs = dibs_on(sqlite.url)
    with closing(sqlite.connect()) as connection:
        block = jobs.store.dialect.blocks["claim"]
        [part] = block.parts
        text, _ = part.compiled("named")
        steps = [row[3] for row in connection.execute(f"explain query plan {text}", dict.fromkeys(block.parameters))]
    inner = [step for step in steps if "dibs_job_lane" in step]
    assert len(inner) == 1
    assert "queue=? AND priority=? AND (available_at,id)>(?,?)" in inner[0].replace(" AND available_at<?", "")
    assert [step for step in steps if "dibs_job" in step and step != inner[0]] == [
        "SEARCH dibs_job USING PRIMARY KEY (id=?)"
    ]
