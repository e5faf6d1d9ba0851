"""Which lane a claimer visits next, how much it takes, and where its marks stand: over lanes that are made up."""

from __future__ import annotations

import pytest

from dibs.errors import DatabaseUnreachable
from dibs.model.json_text import encode
from dibs.model.lane import SHORT
from dibs.store.claimer import Claimer
from tests.unit.fakes import a_row
from tests.unit.store.made_up_lanes import World, claimer_of, claims, numbers


def test_higher_priorities_come_first_and_the_rest_fills_up(world: World) -> None:
    world.fill("mail", 1, 1, 2, 3)
    world.fill("mail", 9, 4, 5)
    jobs = claimer_of(world).claim(4)
    assert numbers(jobs) == [4, 5, 1, 2]
    assert [(job.queue, job.priority, job.locked_by) for job in jobs[:3:2]] == [
        ("mail", 9, "worker-1"),
        ("mail", 1, "worker-1"),
    ]
    assert claims(world) == [("mail", 9, 4), ("mail", 1, 2)]


def test_no_further_lane_is_visited_once_there_is_enough(world: World) -> None:
    world.fill("mail", 9, 1, 2)
    world.fill("mail", 1, 3)
    assert numbers(claimer_of(world).claim(2)) == [1, 2]
    assert claims(world) == [("mail", 9, 2)]


def test_queues_of_one_priority_take_turns(world: World) -> None:
    world.fill("a", 1, *range(1, 9))
    world.fill("b", 1, *range(11, 19))
    claimer = claimer_of(world)
    assert [claimer.claim(1)[0].queue for _ in range(6)] == ["a", "b", "a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("room", "expected"),
    [({}, [1, 2, 3, 4]), ({"a": 1}, [1, 3, 4, 5]), ({"a": 0}, [3, 4, 5]), ({"a": -2, "b": 1}, [3])],
)
def test_a_queue_gives_no_more_than_there_is_room_for(world: World, room: dict[str, int], expected: list[int]) -> None:
    world.fill("a", 9, 1)
    world.fill("a", 8, 2)
    world.fill("b", 7, 3, 4, 5)
    assert numbers(claimer_of(world).claim(4, rooms=room)) == expected
    assert room in ({}, {"a": 1}, {"a": 0}, {"a": -2, "b": 1})


def test_rooms_are_those_of_this_claim_and_not_of_the_last_one(world: World) -> None:
    world.fill("a", 1, 1, 2, 3)
    claimer = claimer_of(world)
    assert numbers(claimer.claim(9, rooms={"a": 1})) == [1]
    assert numbers(claimer.claim(9)) == [2, 3]


def test_only_the_queues_asked_for_are_known(world: World) -> None:
    world.fill("a", 1, 1)
    world.fill("b", 1, 2)
    world.fill("b", 7, 3)
    world.hidden = {("b", 7)}
    claimer = claimer_of(world, queues=frozenset({"b"}))
    assert numbers(claimer.claim(9)) == [3, 2]
    world.fill("a", 9, 4)
    world.hidden = {("a", 9)}
    assert claimer.claim(9, thorough=True) == []


def test_what_other_lanes_gave_is_kept_when_the_database_goes_away(world: World) -> None:
    world.fill("a", 9, 1)
    world.fill("b", 1, 2)
    world.unreachable = {"b"}
    assert numbers(claimer_of(world).claim(9)) == [1]


def test_a_database_that_is_away_before_anything_was_claimed_is_an_error(world: World) -> None:
    world.fill("b", 1, 2)
    world.unreachable = {"b"}
    with pytest.raises(DatabaseUnreachable):
        claimer_of(world).claim(9)


def test_the_mark_of_a_lane_with_work_stays_with_the_work(world: World) -> None:
    world.fill("a", 1, 1, 2)
    claimer = claimer_of(world)
    jobs = claimer.claim(1)
    [lane] = claimer.lanes
    assert (lane.mark_at, lane.mark_id) == (jobs[0].row.available_at, jobs[0].id)


def _marked(world: World, number: int) -> Claimer:
    """A claimer that has just looked everywhere, with its mark at that job."""
    world.fill("a", 1, number)
    claimer = claimer_of(world)
    claimer.claim(9)
    world.claims.clear()
    return claimer


def test_somebody_who_asks_once_finds_what_lies_just_behind_the_mark(world: World) -> None:
    claimer = _marked(world, 5)
    world.fill("a", 1, 1)
    assert claimer.claim(9) == []
    assert numbers(claimer.claim(9, thorough=True)) == [1]
    assert world.claims[-1]["mark_at"] == a_row(5).available_at - SHORT


@pytest.mark.parametrize(("limit", "mark"), [(2, 2), (3, 5)])
def test_more_behind_the_mark_than_could_be_taken_moves_it_back(world: World, limit: int, mark: int) -> None:
    claimer = _marked(world, 5)
    world.fill("a", 1, 1, 2)
    claimer.claim(limit, thorough=True)
    assert [lane.mark_at for lane in claimer.lanes] == [a_row(mark).available_at]


def test_a_lane_written_down_a_moment_ago_is_found_by_who_asks_once(world: World) -> None:
    claimer = _marked(world, 5)
    world.fill("b", 1, 6)
    assert claimer.claim(9) == []
    assert numbers(claimer.claim(9, thorough=True)) == [6]


def test_a_claim_of_innocents_passes_over_suspects_and_leaves_the_mark(world: World) -> None:
    claimer = _marked(world, 1)
    before = [(lane.mark_at, lane.mark_id) for lane in claimer.lanes]
    world.fill("a", 1, 7)
    assert numbers(claimer.claim(9, innocents=True)) == [7]
    assert world.claims[-1]["crashes"] == 0
    assert [(lane.mark_at, lane.mark_id) for lane in claimer.lanes] == before
    claimer.claim(9)
    assert world.claims[-1]["crashes"] > 1_000_000


def test_a_claim_is_for_its_worker_and_as_long_as_the_lease(world: World) -> None:
    world.fill("a", 1, 1)
    claimer_of(world, lease=1.5).claim(3)
    [claim] = world.claims
    assert (claim["worker"], claim["lease"], claim["limit"]) == ("worker-1", 1_500_000, 3)


def test_jobs_that_were_handed_back_are_claimed_again_from_their_places(world: World) -> None:
    world.fill("a", 1, 1, 2, 3)
    claimer = claimer_of(world)
    jobs = claimer.claim(3)
    world.fill("a", 1, 1, 2)
    claimer.rewind(jobs[:2])
    [lane] = claimer.lanes
    assert (lane.mark_at, lane.mark_id) == (jobs[0].row.available_at, jobs[0].id)
    assert numbers(claimer.claim(3)) == [1, 2]


@pytest.mark.parametrize(("own", "queue", "lease"), [(None, None, 60.0), (None, 90.0, 90.0), (5.0, 90.0, 5.0)])
def test_the_lease_of_the_worker_beats_that_of_the_queue(
    world: World, own: float | None, queue: float | None, lease: float
) -> None:
    world.fill("a", 1, 1)
    if queue is not None:
        world.settings["a"] = encode({"lease": queue}).decode()
    claimer = claimer_of(world, lease=own)
    claimer.claim(1)
    assert claimer.lease_of("a") == lease
    assert claimer.lease_of("elsewhere") == (own or 60.0)
