"""Hot statements of MySQL and MariaDB read what they need and no more, whatever the statistics say.

Told by the counters of the session, which count what was read, not by a plan, which says what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from dibs import Dibs
from dibs.model.identity import NIL
from dibs.model.lane import Lane
from dibs.model.outcome import Back, Final
from dibs.store import claim, reap
from dibs.store.claim import START, Claimant
from dibs.store.enqueue import enqueue_many
from dibs.store.jobs import Filter, end_waiting, find, get, requeue, reschedule, run_now
from dibs.store.queues import counts, prune
from dibs.store.settle import beat, settle
from tests.conftest import MYSQL, Make, server_url
from tests.support.mysql_database import Mysql, fresh_mysql
from tests.support.reads import Reads, count_reads

BATCH = 50
LANE = Lane("default", 100)
LEASE = 60_000_000
DIGITS = "json_table('[0,1,2,3,4,5,6,7,8,9]', '$[*]' columns (d integer path '$'))"
THOUSAND = f"select a.d + 10 * b.d + 100 * c.d as n from {DIGITS} a join {DIGITS} b join {DIGITS} c"
MANY = f"select t.n + 1000 * k.d as n from ({THOUSAND}) t join {DIGITS} k"

# 10,000 ready, 10,000 due later at a higher priority, 1,000 held, 10,000 finished with an error each.
FILL = (
    f"insert into dibs_job (task, payload) select 'mail', '{{\"text\": \"some payload\"}}' from ({MANY}) many",
    f"insert into dibs_job (task, priority, available_at)"
    f" select 'mail', 150, utc_timestamp(6) + interval n + 100 second from ({MANY}) many",
    f"insert into dibs_job (task, queue, lease_until, worker_id, token, attempts, claimed_at)"
    f" select 'mail', 'held', utc_timestamp(6) + interval 1 hour, 'w', 1, 1, utc_timestamp(6) from ({THOUSAND}) some",
    f"insert into dibs_history (id, finished_at, created_at, token, priority, attempts, crashes, queue, task, outcome,"
    f" payload) select concat('00000000-0000-7000-8000-', lpad(n, 12, '0')), utc_timestamp(6) - interval n second,"
    f" utc_timestamp(6), 1, 100, 1, 0, 'default', 'mail', 'completed', '{{}}' from ({MANY}) many",
    "insert into dibs_attempt_error (job_id, token, attempt, kind, at, error)"
    " select id, 1, 1, 'error', utc_timestamp(6), '{}' from dibs_history",
)
LITTLE = ("insert into dibs_job (task, queue, lease_until) select 'x', 'other', utc_timestamp(6) from (select 1) one",)
TABLES = ("dibs_job", "dibs_history", "dibs_attempt_error")
ANALYZE = tuple(f"analyze table {table}" for table in TABLES)
STATISTICS = {
    "empty": (*ANALYZE, *FILL),
    "stale": (*LITTLE, *ANALYZE, *FILL),
    "huge": (*FILL, *ANALYZE),
}
"""What was analysed when: while the tables were empty, while they held something else, or now."""


@pytest.fixture(scope="session")
def prepared(worker_id: str) -> Iterator[Callable[[str, str], Mysql]]:
    """A database of 31,000 rows for each server and each state of its statistics; tests only look at it."""
    made: dict[tuple[str, str], Mysql] = {}
    with ExitStack() as stack:

        def prepare(server: str, state: str) -> Mysql:
            if (server, state) not in made:
                database = stack.enter_context(fresh_mysql(server, server_url(server), f"{state}_{worker_id}"))
                made[server, state] = database
                for table in TABLES:
                    database.query(f"alter table {table} stats_auto_recalc = 0")
                for statement in STATISTICS[state]:
                    database.query(statement)
            return made[server, state]

        yield prepare


@pytest.fixture(params=[(server, state) for server in MYSQL for state in STATISTICS], ids="-".join)
def filled(request: pytest.FixtureRequest, prepared: Callable[[str, str], Mysql]) -> Mysql:
    """A server with statistics that know of everything, of nothing, or of something else."""
    return prepared(*request.param)


@pytest.fixture
def counted(filled: Mysql, dibs_on: Make) -> Callable[..., dict[str, Reads]]:
    """What the statements of an operation read."""
    jobs = dibs_on(filled.url)
    return lambda operation: count_reads(jobs, operation(jobs))


def _held(database: Mysql) -> list[str]:
    return [row[0] for row in database.query(f"select id from dibs_job where queue = 'held' limit {BATCH}")]


def _check(reads: Reads, most: int = 10 * BATCH) -> None:
    """Few rows are read, none by going through a table, and no backlog is sorted."""
    assert reads.total() <= most
    assert reads.scanned() <= 5 * BATCH  # the rows of json_table, once for each part
    assert reads.sorted() == 0


@pytest.mark.parametrize("tasks", [None, ("mail",)], ids=["claim", "claim_tasks"])
def test_a_claim_by_lane_reads_its_batch_only(
    counted: Callable[..., dict[str, Reads]], tasks: tuple[str, ...] | None
) -> None:
    claimant = Claimant("w", tasks, LEASE)
    [reads] = counted(lambda jobs: claim.claim(jobs.store.dialect, LANE, START, BATCH, claimant)).values()
    _check(reads)
    assert reads.counters["Handler_read_next"] <= BATCH


def test_a_claim_reads_nothing_before_its_mark(counted: Callable[..., dict[str, Reads]], filled: Mysql) -> None:
    """Thousands of jobs have one instant, as after a bulk load: the mark's id counts, too."""
    [(at, job_id)] = filled.query(
        "select timestampdiff(microsecond, '1970-01-01', available_at), id from dibs_job"
        " where queue = 'default' and priority = 100 order by available_at, id limit 1 offset 9000"
    )
    claimant = Claimant("w", None, LEASE)
    [reads] = counted(lambda jobs: claim.claim(jobs.store.dialect, LANE, (at, job_id), 10, claimant)).values()
    assert reads.counters["Handler_read_next"] <= 10
    [reads] = counted(lambda _jobs: reap.walk("default", 100, (at, job_id))).values()
    assert reads.counters["Handler_read_next"] <= 1_000
    [reads] = counted(lambda jobs: claim.peek(jobs.store.dialect, [LANE], [(at, job_id)])).values()
    assert reads.total() <= 16


def test_a_claim_of_a_lane_due_later_looks_at_nothing_of_it(counted: Callable[..., dict[str, Reads]]) -> None:
    claimant, later = Claimant("w", None, LEASE), Lane("default", 150)
    [reads] = counted(lambda jobs: claim.claim(jobs.store.dialect, later, START, BATCH, claimant)).values()
    assert reads.total() <= 4


def test_a_peek_at_many_lanes_looks_each_of_them_up(counted: Callable[..., dict[str, Reads]]) -> None:
    lanes = [Lane("default", 100), Lane("default", 150), *(Lane("nothing", n) for n in range(30))]
    [reads] = counted(lambda jobs: claim.peek(jobs.store.dialect, lanes, [START] * len(lanes))).values()
    assert reads.total() <= 8 * len(lanes)
    assert reads.sorted() == 0


def test_lanes_are_discovered_by_hopping_from_one_to_the_next(counted: Callable[..., dict[str, Reads]]) -> None:
    reads = counted(lambda _jobs: claim.discover_lanes())["discover_lanes"]
    assert reads.total() <= 16
    assert reads.sorted() == 0


@pytest.mark.parametrize("kind", ["archive", "put_back", "beat", "lock_expired", "end_waiting", "run_now", "get"])
def test_jobs_of_a_batch_are_looked_up_by_their_ids(
    counted: Callable[..., dict[str, Reads]], filled: Mysql, kind: str
) -> None:
    ids = _held(filled)
    attempts = dict.fromkeys(ids, (1, "w"))
    operations: dict[str, Callable[[Dibs], Any]] = {
        "archive": lambda jobs: settle(jobs.store.dialect, [Final(i, 1, "completed", "{}") for i in ids], attempts),
        "put_back": lambda jobs: settle(jobs.store.dialect, [Back(i, 1, 0) for i in ids], attempts),
        "beat": lambda jobs: beat(jobs.store.dialect, [(i, 1, 0) for i in ids], LEASE),
        "lock_expired": lambda jobs: reap.take_back(jobs.store.dialect, ids),
        "end_waiting": lambda jobs: end_waiting(jobs.store.dialect, ids, "cancelled"),
        "run_now": lambda jobs: run_now(jobs.store.dialect, ids),
        "get": lambda jobs: get(jobs.store.dialect, ids),
    }
    _check(counted(operations[kind])["get_jobs" if kind == "get" else kind])


def test_waiting_jobs_are_found_by_id_when_they_are_moved(
    counted: Callable[..., dict[str, Reads]], filled: Mysql
) -> None:
    ids = [row[0] for row in filled.query(f"select id from dibs_job where priority = 150 limit {BATCH}")]
    for operation in (
        lambda jobs: run_now(jobs.store.dialect, ids),
        lambda jobs: reschedule(jobs.store.dialect, ids, 2_000_000_000_000_000),
        lambda jobs: end_waiting(jobs.store.dialect, ids, "cancelled"),
    ):
        [reads] = counted(operation).values()
        _check(reads)


def test_finished_jobs_are_looked_up_by_their_ids(counted: Callable[..., dict[str, Reads]], filled: Mysql) -> None:
    ids = [row[0] for row in filled.query(f"select id from dibs_history limit {BATCH}")]
    finals = [Final(job_id, 1, "completed") for job_id in ids]
    _check(counted(lambda jobs: settle(jobs.store.dialect, finals, {}))["settled_by"])
    backs = [Back(job_id, 1, 0) for job_id in ids]
    _check(counted(lambda jobs: settle(jobs.store.dialect, backs, {}))["returned_by"])
    _check(counted(lambda jobs: requeue(jobs.store.dialect, ids))["requeue"], most=12 * BATCH)


def test_a_walk_of_the_reaper_reads_one_stretch(
    counted: Callable[..., dict[str, Reads]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reap, "STRETCH", BATCH)
    _check(counted(lambda _jobs: reap.walk("default", 100, (0, NIL)))["walk"])


def test_a_prune_reads_what_it_forgets(counted: Callable[..., dict[str, Reads]]) -> None:
    reads = counted(lambda jobs: prune(jobs.store.dialect, "default", ["completed"], 3_600_000_000, BATCH))["prune"]
    _check(reads, most=20 * BATCH)


def test_counts_read_no_more_than_they_may(
    counted: Callable[..., dict[str, Reads]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.store.queues.COUNT_CAP", BATCH)
    reads = counted(lambda _jobs: counts(60_000_000))
    for name in ("count_live", "count_finished", "count_dead"):
        assert reads[name].total() <= 20 * BATCH, name


def test_a_page_of_a_list_is_read_along_the_ids(counted: Callable[..., dict[str, Reads]]) -> None:
    for reads in counted(lambda jobs: find(jobs.store.dialect, Filter(), BATCH)).values():
        _check(reads)


def test_a_bulk_load_reads_its_own_batch_only(counted: Callable[..., dict[str, Reads]], dibs_on: Make) -> None:
    jobs = dibs_on("sqlite://")
    batch = [jobs.job("mail", {"n": n}) for n in range(BATCH)]
    ids = [f"ffffffff-0000-7000-8000-{n:012d}" for n in range(BATCH)]
    _check(counted(lambda on: enqueue_many(on.store.dialect, False, batch, ids))["enqueue_batch"])
