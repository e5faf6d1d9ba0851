"""How far ahead a worker may claim, by how long its handlers take."""

from __future__ import annotations

import pytest

from dibs.worker.pace import MOST, Pace
from tests.unit.fakes import an_attempt

NOW = 1_000.0


def _paced(*seconds: float) -> Pace:
    pace = Pace()
    for each in seconds:
        pace.record(each)
    return pace


def test_before_anything_has_ended_nothing_is_held_ahead() -> None:
    young = [an_attempt(1, started=NOW - 0.001)]
    assert Pace().ahead(NOW, 16, young) == 0


@pytest.mark.parametrize(
    ("seconds", "slots", "ahead"),
    [(0.001, 1, 100), (0.001, 4, 400), (0.05, 3, 6), (0.1, 1, 1), (0.11, 1, 0), (60.0, 16, 0), (0.0, 1, MOST)],
)
def test_a_tenth_of_a_second_of_work_is_held_ahead_for_each_slot(seconds: float, slots: int, ahead: int) -> None:
    assert _paced(*[seconds] * 10).ahead(NOW, slots, []) == pytest.approx(ahead, abs=1)
    assert _paced(*[seconds] * 10).ahead(NOW, slots, []) <= MOST


def test_the_mean_follows_what_ended_last_without_jumping() -> None:
    pace = _paced(0.001)
    assert pace.ahead(NOW, 1, []) == 100
    pace.record(0.011)
    assert pace.ahead(NOW, 1, []) == 25
    for _ in range(50):
        pace.record(0.011)
        last = pace.ahead(NOW, 1, [])
    assert last == 9


def test_what_ended_since_the_last_question_counts_as_its_average() -> None:
    assert _paced(0.001, 0.009).ahead(NOW, 1, []) == 20


def test_nothing_new_leaves_the_mean_as_it_was() -> None:
    pace = _paced(0.001)
    assert [pace.ahead(NOW, 1, []) for _ in range(3)] == [100, 100, 100]


def test_handlers_that_suddenly_take_long_are_noticed_before_they_end() -> None:
    pace = _paced(0.001)
    pace.ahead(NOW, 1, [])
    assert pace.ahead(NOW, 1, [an_attempt(1, started=NOW - 30)]) == 0
    assert pace.ahead(NOW, 1, []) == 100


def test_of_handlers_that_run_the_average_age_counts() -> None:
    pace = _paced(0.001)
    pace.ahead(NOW, 1, [])
    assert pace.ahead(NOW, 1, [an_attempt(1, started=NOW - 0.03), an_attempt(2, started=NOW - 0.01)]) == 5


def test_handlers_that_have_just_begun_make_nothing_faster() -> None:
    pace = _paced(0.05)
    pace.ahead(NOW, 1, [])
    assert pace.ahead(NOW, 1, [an_attempt(1, started=NOW - 0.0001)]) == 2


def test_only_handlers_that_run_now_tell_how_long_they_take() -> None:
    pace = _paced(0.001)
    pace.ahead(NOW, 1, [])
    ended = an_attempt(1, started=NOW - 30)
    ended._settled = True
    assert pace.ahead(NOW, 1, [ended, an_attempt(2)]) == 100
