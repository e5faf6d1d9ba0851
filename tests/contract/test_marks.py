"""The mark steps over what was claimed before; what appears behind it is found within a second all the same."""

from __future__ import annotations

from contextlib import closing

import pytest

from dibs import Dibs
from dibs.store import claimer as module
from dibs.store.claimer import Claimer
from tests.conftest import Make
from tests.support.clock import FakeClock, FakeMonotonic
from tests.support.databases import Database, Server

MINUTE = 60_000_000


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The clock by which looks are planned."""
    stopwatch = FakeMonotonic()
    monkeypatch.setattr(module, "time", stopwatch)
    return stopwatch


@pytest.fixture
def claimer(timed: Dibs, stopwatch: FakeMonotonic) -> Claimer:
    """A claimer as a worker has it."""
    return Claimer(timed.store.call, timed.store.dialect, "w")


def _numbers(claimer: Claimer, limit: int = 10) -> list[int]:
    return [job.payload["n"] for job in claimer.claim(limit)]


def _fill(jobs: Dibs, numbers: range) -> None:
    for n in numbers:
        jobs.enqueue("mail", {"n": n})


def _move(database: Database, clock: FakeClock, n: int, earlier: int) -> None:
    """Let a job appear as if its transaction had begun earlier and committed now."""
    instant, number = {
        "postgres": ("timestamptz 'epoch' + {} * interval '1 microsecond'", "cast(payload ->> 'n' as integer)"),
        "sqlite": ("{}", "cast(payload ->> 'n' as integer)"),
    }.get(database.dialect, ("timestamp'1970-01-01 00:00:00' + interval {} microsecond", "json_value(payload, '$.n')"))
    due = instant.format(clock.now - earlier)
    database.query(f"update {database.table('job')} set available_at = {due} where {number} = {n}")


@pytest.mark.parametrize("earlier", [MINUTE // 2, 30 * MINUTE], ids=["half a minute", "half an hour"])
def test_a_job_that_commits_behind_the_mark_is_found_within_a_second(
    timed: Dibs, claimer: Claimer, stopwatch: FakeMonotonic, clock: FakeClock, database: Database, earlier: int
) -> None:
    _fill(timed, range(3))
    clock.advance("1h")
    assert _numbers(claimer) == [0, 1, 2]
    timed.enqueue("mail", {"n": 9}, delay="1h")
    _move(database, clock, 9, earlier)
    found: list[int] = []
    for _ in range(5):
        found += _numbers(claimer)
        stopwatch.now += 0.25
    assert found == [9]


def test_a_job_behind_the_mark_is_found_while_there_is_no_end_of_work_before_it(
    timed: Dibs, claimer: Claimer, stopwatch: FakeMonotonic, clock: FakeClock, database: Database
) -> None:
    _fill(timed, range(60))
    assert _numbers(claimer, 5) == [0, 1, 2, 3, 4]
    timed.enqueue("mail", {"n": 99}, delay="1h")
    _move(database, clock, 99, MINUTE)
    found: list[int] = []
    for _ in range(5):
        found += _numbers(claimer, 5)
        stopwatch.now += 0.25
    assert 99 in found
    assert len(found) == 25


def test_a_backlog_behind_the_mark_is_claimed_at_full_speed(
    timed: Dibs, claimer: Claimer, stopwatch: FakeMonotonic, clock: FakeClock
) -> None:
    """A queue that was paused for long: the pause of looks, twenty times their cost, must not be its pace."""
    _fill(timed, range(100))
    timed.pause("default")
    clock.advance("1h")
    assert _numbers(claimer) == []
    timed.resume("default")
    stopwatch.now += 5
    stopwatch.step = 0.01
    assert [len(claimer.claim(10)) for _ in range(10)] == [10] * 10


def test_a_returned_job_is_found_although_the_mark_has_passed_it(
    timed: Dibs, claimer: Claimer, clock: FakeClock
) -> None:
    _fill(timed, range(3))
    jobs = claimer.claim(3)
    timed.nack(jobs[0], "failed", retry_in=0)
    timed.snooze(jobs[1], 0)
    assert _numbers(claimer) == [0, 1]


def test_an_expired_lease_comes_back_before_the_mark(timed: Dibs, claimer: Claimer, clock: FakeClock) -> None:
    _fill(timed, range(3))
    assert len(claimer.claim(2)) == 2
    clock.advance("2m")
    assert timed.reclaim() == 2
    clock.advance("2m")
    assert sorted(_numbers(claimer)) == [0, 1, 2]


def test_a_claim_that_is_rolled_back_leaves_its_jobs_to_be_found(
    server: Server, stopwatch: FakeMonotonic, dibs_on: Make
) -> None:
    jobs = dibs_on(server.url)
    claimer = Claimer(jobs.store.call, jobs.store.dialect, "w")
    handles = jobs.enqueue_many([jobs.job("mail", {"n": n}) for n in range(4)])
    with closing(server.connect()) as holder:
        holder.execute("begin")
        holder.execute(f"update {server.table('job')} set lease_until = now() where id = %s", (handles[0].id,))
        assert _numbers(claimer) == [1, 2, 3]
        holder.execute("rollback")
    stopwatch.now += 1.1
    assert _numbers(claimer) == [0]


def test_a_new_lane_of_another_process_is_found_within_two_seconds(
    timed: Dibs, claimer: Claimer, stopwatch: FakeMonotonic, database: Database
) -> None:
    assert _numbers(claimer) == []
    database.query(f"insert into {database.table('job')} (queue, task, payload) values ('new', 'mail', '{{\"n\": 1}}')")
    found: list[int] = []
    for _ in range(9):
        found += _numbers(claimer)
        stopwatch.now += 0.25
    assert found == [1]


def test_an_idle_claimer_knows_when_the_next_job_is_due(timed: Dibs, claimer: Claimer) -> None:
    timed.enqueue("mail", {"n": 1}, delay="90s")
    timed.enqueue("mail", {"n": 2}, delay="1h", queue="other")
    assert _numbers(claimer) == []
    assert _numbers(claimer) == []
    assert claimer.due_in == pytest.approx(90, abs=0.1)


def test_many_idle_lanes_cost_one_statement(
    timed: Dibs, claimer: Claimer, stopwatch: FakeMonotonic, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.enqueue_many([timed.job("mail", {"n": n}, queue=f"q{n}", delay="1h") for n in range(50)])
    assert _numbers(claimer) == []
    sent: list[str] = []
    original = timed.store.call

    def counted(make: object) -> object:
        operation = make()  # type: ignore[operator]
        sent.append(operation.__name__)
        return original(lambda: operation)

    monkeypatch.setattr(claimer, "_call", counted)
    assert _numbers(claimer) == []
    assert sent == ["peek"]
