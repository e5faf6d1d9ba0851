"""Operations that claim and look around, driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

from dibs.model.lane import SHORT, Lane
from dibs.store.claim import (
    START,
    Claimant,
    Glance,
    claim,
    claimable_lanes,
    discover_lanes,
    known_lanes,
    peek,
    short_mark,
)
from tests.unit.fakes import a_dialect, a_row, drive

LANE = Lane("mail", 9, mark_at=50, mark_id="x")


@pytest.mark.parametrize(("tasks", "name"), [(None, "claim"), ((), "claim_tasks"), (("a", "b"), "claim_tasks")])
def test_a_claim_is_for_all_tasks_only_if_none_are_named(tasks: Any, name: str) -> None:
    found = drive(claim(a_dialect(), LANE, (50, "x"), 7, Claimant("worker-1", tasks, 60)))
    assert found.names == [name]
    params = found.params(name)
    assert params.get("tasks") == (None if tasks is None else ",".join(tasks))
    asked = {"queue": "mail", "priority": 9, "mark_at": 50, "mark_id": "x", "limit": 7, "worker": "worker-1"}
    assert {**params, **asked, "lease": 60} == params


def test_claimed_jobs_are_put_in_order_whatever_order_they_come_back_in() -> None:
    rows = [a_row(3), a_row(1), a_row(4, available_at=a_row(2).available_at), a_row(2)]
    found = drive(claim(a_dialect(), LANE, START, 9, Claimant("w", None, 60)), {"claim": list(rows)})
    assert [row.id[-1] for row in found.answer] == ["1", "2", "4", "3"]


@pytest.mark.parametrize(
    ("queues", "lanes"),
    [
        (None, [("a", 1), ("b", 2)]),
        (frozenset({"b", "c"}), [("b", 2)]),
        (frozenset(), []),
    ],
)
def test_lanes_are_narrowed_to_the_queues_asked_for(queues: Any, lanes: Any) -> None:
    found = drive(known_lanes(queues), {"lanes": [("a", 1, 700), ("b", 2, 700)]})
    assert found.answer == (lanes, 700)


@pytest.mark.parametrize(
    ("queues", "lanes"),
    [
        (None, [("a", 1), ("dibs", 2)]),
        (frozenset({"a", "dibs.bench"}), [("a", 1), ("dibs.bench", 3)]),
    ],
)
def test_a_reserved_queue_is_claimed_from_only_by_those_who_name_it(queues: Any, lanes: Any) -> None:
    found = drive(claimable_lanes(queues), {"lanes": [("a", 1, 700), ("dibs", 2, 700), ("dibs.bench", 3, 700)]})
    assert found.answer == (lanes, 700)
    assert drive(known_lanes(None), {"lanes": [("dibs.bench", 3, 700)]}).answer[0] == [("dibs.bench", 3)]


def test_without_any_lane_the_time_is_not_known() -> None:
    assert drive(known_lanes(None)).answer == ([], 0)


def test_only_lanes_that_are_new_are_remembered() -> None:
    found = drive(
        discover_lanes(),
        {"discover_lanes": [("b", 2), ("c", 1), ("a", 5), ("a", 1)], "lanes": [("b", 2, 700), ("gone", 1, 700)]},
    )
    assert found.answer == [("a", 1), ("a", 5), ("c", 1)]
    assert found.names == ["discover_lanes", "lanes", "add_lane", "add_lane", "add_lane"]


def test_a_peek_is_one_statement_for_all_lanes() -> None:
    lanes = [LANE, Lane("bulk", 1)]
    found = drive(peek(a_dialect(), lanes, [(50, "x"), START]), {"peek": [("mail", 9, 1, None), ("bulk", 1, 0, 3_000)]})
    assert found.answer == [Glance(("mail", 9), True, None), Glance(("bulk", 1), False, 3_000)]
    assert found.params("peek")["lanes"] == {
        "queues": ["mail", "bulk"],
        "priorities": [9, 1],
        "marks_at": [50, START[0]],
        "mark_ids": ["x", START[1]],
    }


def test_a_short_look_begins_a_minute_before_the_mark_and_not_before_time() -> None:
    assert short_mark(Lane("mail", 9, mark_at=SHORT + 5)) == (5, START[1])
    assert short_mark(Lane("mail", 9, mark_at=SHORT - 5)) == START
