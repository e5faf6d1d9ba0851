"""The states of a job and the ways between them fit together."""

from __future__ import annotations

import pytest

from dibs.model.settings import DEFAULT_RETENTION
from dibs.model.status import FINAL, HELD, TRANSITIONS, WAITING, Priority, Status

START = frozenset({Status.READY, Status.SCHEDULED})


def _reached(start: frozenset[Status]) -> frozenset[Status]:
    found = start
    while found != (more := found.union(*(TRANSITIONS[status] for status in found))):
        found = more
    return found


def test_every_status_is_waiting_or_held_or_final() -> None:
    assert sorted([*WAITING, *HELD, *FINAL]) == sorted(Status)
    assert {status for status in Status if status.final} == FINAL


def test_every_status_has_its_ways_and_none_leads_to_itself() -> None:
    assert set(TRANSITIONS) == set(Status)
    assert not [status for status, after in TRANSITIONS.items() if status in after]


def test_whatever_a_job_has_become_it_can_run_again() -> None:
    for status in Status:
        assert Status.READY in _reached(frozenset({status})), status


def test_every_status_but_blocked_can_be_reached_by_a_new_job() -> None:
    assert _reached(START) == set(Status) - {Status.BLOCKED}


@pytest.mark.parametrize("status", sorted(FINAL))
def test_a_job_that_has_ended_can_only_be_asked_to_run_again(status: Status) -> None:
    assert TRANSITIONS[status] == {Status.READY}


def test_only_a_ready_job_is_claimed_and_only_a_claimed_one_runs() -> None:
    assert {status for status, after in TRANSITIONS.items() if Status.CLAIMED in after} == {Status.READY}
    assert {status for status, after in TRANSITIONS.items() if Status.RUNNING in after} == {Status.CLAIMED}


@pytest.mark.parametrize("outcome", [Status.COMPLETED, Status.DEAD, Status.RETRYING])
def test_only_a_job_that_somebody_holds_can_succeed_or_fail(outcome: Status) -> None:
    assert {status for status, after in TRANSITIONS.items() if outcome in after} == HELD


@pytest.mark.parametrize("outcome", [Status.CANCELLED, Status.DISCARDED])
def test_every_job_that_has_not_ended_can_be_ended_on_purpose(outcome: Status) -> None:
    assert {status for status, after in TRANSITIONS.items() if outcome in after} == WAITING | HELD


def test_every_final_status_has_a_retention() -> None:
    assert set(DEFAULT_RETENTION) == FINAL


def test_a_status_reads_and_compares_as_its_word() -> None:
    assert f"{Status.READY}" == "ready"
    assert Status("dead") is Status.DEAD


def test_what_a_user_waits_for_runs_before_what_nobody_waits_for() -> None:
    assert sorted(Priority, reverse=True) == [Priority.EXPLICIT, Priority.DISCOVERED, Priority.BACKFILL]
