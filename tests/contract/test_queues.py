"""Settings, counts and retention of queues."""

from __future__ import annotations

from typing import Any

import pytest

from dibs import Backoff, Dibs
from dibs.errors import InvalidOption
from dibs.model.status import FINAL
from tests.contract.statuses import one_of_each
from tests.support.clock import FakeClock
from tests.support.databases import Database


def test_settings_of_a_queue_are_merged_and_none_brings_the_default_back(dibs: Dibs) -> None:
    backoff = Backoff.polynomial(2, "1m")
    dibs.configure("mail", lease="5m", max_attempts=3, retention={"dead": "90d", "completed": None})
    dibs.configure("mail", max_attempts=None, timeout=7, backoff=backoff, max_crashes=2)
    [state] = dibs.queues()
    settings = state.settings
    assert (state.name, state.paused_at) == ("mail", None)
    assert (settings.lease, settings.timeout, settings.max_attempts, settings.max_crashes) == (300, 7, None, 2)
    assert (settings.backoff, settings.retention) == (backoff, {"dead": 90 * 86_400, "completed": None})
    dibs.configure("mail", retention={"cancelled": 5})
    assert dibs.queues()[0].settings.retention == {"cancelled": 5}
    dibs.configure("mail", retention="7d")
    assert dibs.queues()[0].settings.retention == dict.fromkeys(map(str, FINAL), 7 * 86_400)


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 3},
        {"lease": 0.5},
        {"lease": "soon"},
        {"timeout": -1},
        {"max_attempts": 0},
        {"max_crashes": True},
        {"backoff": "30s"},
        {"retention": {"lost": 1}},
        {"retention": {"dead": "x"}},
    ],
)
def test_an_impossible_setting_is_refused_and_changes_nothing(dibs: Dibs, wrong: Any) -> None:
    dibs.configure("mail", lease=10)
    with pytest.raises(InvalidOption):
        dibs.configure("mail", **wrong)
    assert dibs.queues()[0].settings == dibs.queues()[0].settings._replace(lease=10)


def test_queues_are_those_that_are_configured_or_hold_jobs(dibs: Dibs) -> None:
    dibs.configure("a", lease=5)
    dibs.enqueue("mail", queue="b")
    dibs.enqueue("mail", queue="c")
    dibs.ack(dibs.dequeue(queues=["c"])[0])
    dibs.pause("d", "closed")
    states = {state.name: state for state in dibs.queues()}
    assert sorted(states) == ["a", "b", "c", "d"]
    assert states["d"].pause_reason == "closed"
    assert states["d"].paused_at is not None
    first = states["d"].paused_at
    dibs.pause("d", "still closed")
    assert [(s.paused_at, s.pause_reason) for s in dibs.queues() if s.name == "d"] == [(first, "still closed")]
    dibs.resume("d")
    dibs.resume("unknown")
    assert [(s.paused_at, s.pause_reason) for s in dibs.queues() if s.name == "d"] == [(None, None)]


def test_counts_tell_each_lane_and_each_outcome(timed: Dibs, clock: FakeClock) -> None:
    one_of_each(timed, "a")
    timed.enqueue("mail", queue="b", priority=7)
    clock.advance("30s")
    counts = timed.stats()
    live = {(row.queue, row.priority, row.status): row.jobs for row in counts.live}
    assert live == {("a", 100, s): 1 for s in ("claimed", "running", "retrying", "scheduled", "ready")} | {
        ("b", 7, "ready"): 1
    }
    assert {row.oldest for row in counts.live if row.status in ("scheduled", "retrying")} == {0}
    assert [row.oldest for row in counts.live if row.queue == "b"] == [pytest.approx(30, abs=0.1)]
    assert sorted(counts.finished) == [("a", outcome, 1) for outcome in ("cancelled", "completed", "dead", "discarded")]
    assert not counts.capped
    clock.advance("2h")
    assert timed.stats("1h").finished == []
    assert len(timed.stats("3h").finished) == 4


def test_dead_jobs_are_counted_however_long_ago_they_died(
    timed: Dibs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timed.stats().dead == []
    [dead] = _kill(timed, "b", 1)
    one_of_each(timed, "a")
    clock.advance("90d")
    assert timed.stats().dead == [("a", 1), ("b", 1)]
    timed.retry(dead)
    assert timed.stats().dead == [("a", 1)]
    monkeypatch.setattr("dibs.store.queues.COUNT_CAP", 100)
    assert not timed.stats().capped
    _kill(timed, "c", 100)
    counts = timed.stats()
    assert (counts.dead, counts.capped) == ([("c", 100)], True), "the failures of the newest jobs are read first"


def _kill(jobs: Dibs, queue: str, number: int) -> list[str]:
    handles = jobs.enqueue_many([jobs.job("mail", queue=queue, max_attempts=1) for _ in range(number)])
    jobs.nack_many([(job, "no") for job in jobs.dequeue([queue], limit=number)])
    return [handle.id for handle in handles]


def test_counts_say_when_they_have_stopped_counting(dibs: Dibs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dibs.store.queues.COUNT_CAP", 8)
    dibs.enqueue_many([dibs.job("mail", {"n": n}, delay=n % 2 * 3_600) for n in range(7)])
    assert not dibs.stats().capped
    dibs.enqueue_many([dibs.job("mail", {"n": n}, delay=n % 2 * 3_600) for n in range(9)])
    counts = dibs.stats()
    assert counts.capped
    assert sum(row.jobs for row in counts.live) == 8


def _age(jobs: Dibs, clock: FakeClock) -> dict[str, str]:
    made = one_of_each(jobs)
    clock.advance("23h")
    return made


def test_a_prune_forgets_what_is_past_its_retention_by_its_end(
    timed: Dibs, clock: FakeClock, database: Database
) -> None:
    made = _age(timed, clock)
    assert (timed.count_prunable(), timed.prune()) == (0, 0)
    clock.advance("2h")
    assert (timed.count_prunable(), timed.prune()) == (3, 3)
    left = {status for status, job_id in made.items() if timed.find() and job_id in timed.find()}
    assert left == {"claimed", "running", "retrying", "scheduled", "ready", "dead"}
    assert database.count("attempt_error") == 2


def test_whoever_counts_writes_nothing(dibs: Dibs, database: Database) -> None:
    database.query(f"insert into {database.table('job')} (queue, task, payload) values ('new', 'send', '{{}}')")
    assert [(row.queue, row.status, row.jobs) for row in dibs.stats().live] == [("new", "ready", 1)]
    assert database.count("lane") == 0


def test_a_prune_never_touches_a_job_that_has_not_ended(timed: Dibs, clock: FakeClock, database: Database) -> None:
    """In the documents the cleanup goes by the time of creation, and deletes what waits or runs."""
    _age(timed, clock)
    clock.advance("1000d")
    assert timed.prune(older_than=0) == 4
    assert (database.count("job"), database.count("history"), database.count("attempt_error")) == (5, 0, 1)


def test_retention_is_a_matter_of_queue_and_outcome(timed: Dibs, clock: FakeClock) -> None:
    timed.configure("a", retention={"completed": "1h", "dead": "2h", "cancelled": None})
    one_of_each(timed, "a")
    clock.advance("61m")
    assert timed.prune() == 1
    clock.advance("1h")
    assert timed.prune() == 1
    clock.advance("1d")
    assert timed.prune() == 1
    assert timed.count(status=FINAL) == timed.count(status="cancelled") == 1


def test_a_prune_can_be_kept_to_one_queue_and_works_in_bounded_steps(
    timed: Dibs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.store.queues.PRUNE_BATCH", 4)
    monkeypatch.setattr("dibs.store.queues.prune.__defaults__", (4,))
    timed.enqueue_many([timed.job("mail", queue=queue) for queue in ("a", "b") for _ in range(11)])
    timed.ack_many(timed.dequeue(limit=22))
    clock.advance("2d")
    assert timed.prune("a") == 11
    assert timed.prune("unknown") == 0
    assert timed.count() == 11
    assert timed.prune() == 11
