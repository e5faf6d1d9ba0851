"""The mark of a lane, the looks behind it, and the order of lanes."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.model.identity import NIL
from dibs.model.lane import BUSY_LOOK, IDLE_LOOK, LIVELY, SHARE, SHORT, Lane, Look, claim_order
from tests.unit.fakes import a_row, reproducible


def _mark(lane: Lane) -> tuple[int, str]:
    return lane.mark_at, lane.mark_id


def _place(number: int) -> tuple[int, str]:
    row = a_row(number)
    return row.available_at, row.id


def _at(number: int) -> Lane:
    lane = Lane("mail", 100)
    lane.mark_at, lane.mark_id = _place(number)
    return lane


def test_a_new_lane_is_read_from_its_very_front() -> None:
    lane = Lane("mail", 100)
    assert _mark(lane) == (0, NIL)
    assert lane.look_due(0.0) == "full"


def test_the_mark_moves_to_the_last_job_claimed() -> None:
    lane = _at(3)
    lane.claimed([a_row(4), a_row(6)])
    assert _mark(lane) == _place(6)


@pytest.mark.parametrize("backlog", [False, True])
def test_a_claim_of_nothing_leaves_the_mark_where_it_is(backlog: bool) -> None:
    lane = _at(3)
    lane.claimed([], backlog)
    assert _mark(lane) == _place(3)


def test_a_look_that_took_all_it_found_does_not_move_the_mark_back() -> None:
    lane = _at(5)
    lane.claimed([a_row(1), a_row(2)])
    assert _mark(lane) == _place(5)


def test_a_look_that_found_more_than_it_could_take_moves_the_mark_back() -> None:
    lane = _at(5)
    lane.claimed([a_row(1), a_row(2)], backlog=True)
    assert _mark(lane) == _place(2)


def test_jobs_of_one_microsecond_are_told_apart_by_their_ids() -> None:
    lane = _at(5)
    lane.claimed([a_row(4, available_at=lane.mark_at)])
    assert _mark(lane) == _place(5)
    lane.claimed([a_row(6, available_at=lane.mark_at)])
    assert _mark(lane) == (_place(5)[0], _place(6)[1])


def test_a_job_that_was_handed_back_pulls_the_mark_back_to_its_place() -> None:
    lane = _at(5)
    lane.rewind(a_row(7))
    assert _mark(lane) == _place(5)
    lane.rewind(a_row(2))
    lane.rewind(a_row(4))
    assert _mark(lane) == _place(2)


def test_a_lane_found_empty_moves_its_mark_up_to_a_short_look_behind_now() -> None:
    lane, start = _at(5), _place(5)
    lane.found_empty(start[0] + SHORT, 0.0)
    assert _mark(lane) == start
    lane.found_empty(start[0] + SHORT + 1, 0.0)
    assert _mark(lane) == (start[0] + 1, NIL)


def test_a_lane_found_empty_never_moves_its_mark_back() -> None:
    lane = _at(5)
    lane.found_empty(0, 0.0)
    assert _mark(lane) == _place(5)


@pytest.mark.parametrize(
    ("now", "due"), [(9.0, None), (10.0, "short"), (19.0, "short"), (20.0, "full"), (99.0, "full")]
)
def test_a_full_look_comes_before_a_short_one(now: float, due: Look | None) -> None:
    assert Lane("mail", 100, short_due=10.0, full_due=20.0).look_due(now) == due


@pytest.mark.parametrize(
    ("look", "found", "pause"),
    [("short", True, BUSY_LOOK), ("short", False, IDLE_LOOK), ("full", True, BUSY_LOOK), ("full", False, BUSY_LOOK)],
)
def test_cheap_looks_come_again_after_their_usual_pause(look: Look, found: bool, pause: float) -> None:
    lane = Lane("mail", 100)
    lane.looked(look, 50.0, 0.001, found)
    assert lane.short_due == pytest.approx(50.001 + pause)
    assert lane.full_due == (pytest.approx(50.001 + pause) if look == "full" else 0.0)


@pytest.mark.parametrize("look", get_args(Look))
def test_dear_looks_take_no_more_than_their_share_of_the_time(look: Any) -> None:
    lane = Lane("mail", 100)
    lane.looked(look, 50.0, 2.0, found=False)
    assert lane.short_due == 52.0 + SHARE * 2.0


@pytest.mark.parametrize("look", get_args(Look))
def test_a_look_at_a_server_that_stood_still_puts_off_the_next_one_by_no_more_than_usual(look: Any) -> None:
    lane = Lane("mail", 100)
    lane.looked(look, 50.0, 0.001, found=False)
    lane.looked(look, 60.0, 6.0, found=False)
    assert lane.short_due <= 66.0 + BUSY_LOOK
    lane.looked(look, 70.0, 6.0, found=False)
    assert lane.short_due == 76.0 + SHARE * 6.0, "twice is no accident"


def test_a_full_look_does_not_hasten_a_short_one_that_was_dear() -> None:
    lane = Lane("mail", 100, short_due=500.0)
    lane.looked("full", 50.0, 0.001, found=False)
    assert lane.short_due == 500.0


LANES = st.lists(st.builds(Lane, st.sampled_from(["a", "b", "c", "d"]), st.integers(-3, 3)), min_size=1, max_size=12)


@reproducible
@given(LANES, st.integers(0, 1_000))
def test_lanes_come_by_priority_whoever_has_the_turn(lanes: list[Lane], turn: int) -> None:
    ordered = claim_order(lanes, turn)
    assert [lane.priority for lane in ordered] == sorted((lane.priority for lane in lanes), reverse=True)
    assert Counter(map(id, ordered)) == Counter(map(id, lanes))


def test_queues_of_one_priority_are_first_equally_often() -> None:
    lanes = [Lane(queue, 100) for queue in ("c", "a", "d", "b")]
    first = Counter(claim_order(lanes, turn)[0].queue for turn in range(40))
    assert first == {"a": 10, "b": 10, "c": 10, "d": 10}


def test_one_queue_needs_no_turns() -> None:
    lanes = [Lane("mail", 1), Lane("mail", 2)]
    assert [lane.priority for lane in claim_order(lanes, 7)] == [2, 1]


def test_a_lane_is_lively_until_it_has_been_empty_for_a_while_and_again_when_something_is_due() -> None:
    lane = _at(5)
    assert lane.lively(1_000.0)
    lane.found_empty(0, 1_000.0)
    lane.found_empty(0, 1_005.0)
    assert [lane.lively(1_000.0 + after) for after in (0.0, LIVELY - 0.1, LIVELY)] == [True, True, False]
    lane.next_due = 2_000.0
    assert [lane.lively(at) for at in (1_999.9, 2_000.0)] == [False, True]
    lane.next_due = None
    lane.claimed([a_row(9)])
    assert lane.lively(3_000.0)
