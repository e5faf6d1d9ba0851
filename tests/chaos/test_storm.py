"""A minute of everything that takes locks, on each kind of server: nobody notices but callers with transactions.

What the actors do, and what is asked afterwards, is in chaos/storm.py; `python -m chaos.storm` gives other doses.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.ledger import Ack, Answer, Ledger
from chaos.storm import Dose, Storm
from tests.support.databases import Server

MINUTE = Dose(seconds=60.0, patience=60.0)
"""Without a limit for how long a lock may be held: that depends on what else the machine does, and other tests run
beside this one. `python -m chaos.storm` judges it, alone on a machine."""


@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", ["mysql97", "mariadb1011", "postgres18"])
def test_a_storm_of_producers_consumers_reapers_and_retention_loses_nothing_and_reaches_nobody(
    name: str, open_database: Callable[[str], Server]
) -> None:
    outcome = Storm(open_database(name).url, MINUTE).blow()
    print(outcome)
    assert outcome.passed, str(outcome)


# -- what is asked afterwards, by hand-made answers


def _told(*answers: Answer, acks: tuple[Ack, ...] = ()) -> Ledger:
    return Ledger(list(answers), list(acks))


FIRST = Answer("key", "a", True, 1, 2)
DONE = Ack("a", 5, 6)


def test_a_job_that_ended_once_breaks_nothing() -> None:
    assert list(_told(FIRST, acks=(DONE,)).broken({}, set())) == []
    assert list(_told(FIRST).broken({"a": "dead"}, set())) == []


def test_a_job_that_is_nowhere_is_lost() -> None:
    assert len(list(_told(FIRST).broken({}, set()))) == 1


def test_a_job_that_is_left_has_not_ended() -> None:
    assert list(_told(FIRST).broken({}, {"a"})) == ["a has not ended"]


def test_a_job_that_was_acked_twice_or_died_as_well_has_ended_twice() -> None:
    assert len(list(_told(FIRST, acks=(DONE, DONE)).broken({}, set()))) == 1
    assert len(list(_told(FIRST, acks=(DONE,)).broken({"a": "dead"}, set()))) == 1


def test_a_job_that_nobody_made_is_unexpected() -> None:
    assert len(list(_told(acks=(DONE,)).broken({}, set()))) == 1
    assert len(list(_told().broken({"a": "cancelled"}, set()))) == 1
    assert len(list(_told(FIRST, Answer("key", "b", False, 3, 4), acks=(DONE,)).broken({}, set()))) == 1


def test_an_enqueue_must_not_be_answered_with_a_job_that_had_ended() -> None:
    assert len(list(_told(FIRST, Answer("key", "a", False, 7, 8), acks=(DONE,)).broken({}, set()))) == 1
    assert list(_told(FIRST, Answer("key", "a", False, 5.5, 8), acks=(DONE,)).broken({}, set())) == []


def test_two_live_jobs_of_one_key_are_noticed() -> None:
    acks = (DONE, Ack("b", 9, 10))
    assert len(list(_told(FIRST, Answer("key", "b", True, 3, 4), acks=acks).broken({}, set()))) == 1
    assert list(_told(FIRST, Answer("key", "b", True, 3, 7), acks=acks).broken({}, set())) == []
