"""When a claimer reads its lanes again, finds new ones, and peeks before it claims: over lanes that are made up."""

from __future__ import annotations

import pytest

from dibs.model.lane import LIVELY, SHORT
from dibs.store.claimer import MANY_LANES, REFRESH, Claimer
from tests.support.clock import FakeMonotonic
from tests.unit.store.made_up_lanes import NOW, World, claimer_of, claims, numbers


def test_lanes_and_settings_are_read_again_after_a_second_and_not_before(world: World, time: FakeMonotonic) -> None:
    world.fill("a", 1, *range(1, 20))
    claimer = claimer_of(world)
    for _ in range(3):
        claimer.claim(1)
    assert world.asked.count("settings") == 1
    time.now += REFRESH
    claimer.claim(1)
    assert world.asked.count("settings") == 2
    claimer.forget()
    claimer.claim(1)
    assert world.asked.count("settings") == 3
    assert claimer.database_now == NOW


def test_somebody_who_asks_once_finds_a_lane_nobody_has_written_down(world: World) -> None:
    world.fill("new", 1, 1)
    world.hidden = {("new", 1)}
    claimer = claimer_of(world)
    assert claimer.lanes == []
    assert numbers(claimer.claim(9, thorough=True)) == [1]
    assert world.asked.count("discover_lanes") == 1


def test_an_idle_claimer_looks_for_new_lanes_now_and_then(world: World, time: FakeMonotonic) -> None:
    claimer = claimer_of(world)
    assert claimer.claim(9) == []
    world.fill("new", 1, 1)
    world.hidden = {("new", 1)}
    assert claimer.claim(9) == []
    assert world.asked.count("discover_lanes") == 1
    time.now += 10
    assert numbers(claimer.claim(9)) == [1]
    assert world.asked.count("discover_lanes") == 2


def test_a_claimer_that_never_runs_dry_finds_a_lane_nobody_has_written_down(world: World, time: FakeMonotonic) -> None:
    world.fill("old", 1, *range(1, 100))
    claimer = claimer_of(world)
    claimer.claim(9)
    world.fill("old", 150, 200)
    world.hidden = {("old", 150)}
    assert numbers(claimer.claim(2)) == [10, 11]
    time.now += 10
    assert numbers(claimer.claim(2)) == [200, 12]


@pytest.mark.parametrize(("pause", "peeked"), [(0, 2), (10_000, MANY_LANES + 3)])
def test_lanes_that_have_long_been_quiet_are_peeked_at_when_there_is_time_for_it(
    world: World, time: FakeMonotonic, pause: float, peeked: int
) -> None:
    for number in range(MANY_LANES + 2):
        world.fill(f"quiet{number}", 1)
    world.fill("busy", 1, *range(1, 100))
    claimer = claimer_of(world)
    claimer.claim(1)
    world.due = {"quiet1": 0}
    time.now, time.step = time.now + LIVELY, 1.0
    for _ in range(2):  # dear more than once
        claimer.claim(1)
    time.now, time.step = time.now + pause, 0.0
    world.peeked.clear()
    assert len(claimer.claim(1)) == 1
    assert len(world.peeked) == peeked  # those with work or something due at least, and all of them now and then


def test_a_peek_that_a_standing_server_kept_waiting_does_not_keep_the_next_ones_from_quiet_lanes(
    world: World, time: FakeMonotonic
) -> None:
    world.fill("quiet", 1)
    claimer = claimer_of(world)
    for _ in range(3):
        claimer.claim(1)
        time.now += 2 * LIVELY
    time.step = 6.0
    claimer.claim(1)
    time.step, time.now = 0.0, time.now + LIVELY
    world.fill("quiet", 1, 1)
    assert numbers(claimer.claim(1)) == [1]


def test_after_a_ring_all_is_looked_at_again_but_not_for_ever(world: World, time: FakeMonotonic) -> None:
    claimer = claimer_of(world)
    claimer.claim(9)
    world.fill("new", 1, 1)
    claimer.hurry()
    assert numbers(claimer.claim(9)) == [1]
    read = world.asked.count("lanes")
    claimer.claim(9)
    assert world.asked.count("lanes") == read


def test_a_dear_look_around_is_not_taken_at_every_ring(world: World, time: FakeMonotonic) -> None:
    world.fill("a", 1)
    claimer = claimer_of(world)
    time.step = 1.0
    claimer.hurry()
    claimer.claim(9)
    time.step = 0.0
    claimer.claim(9)
    assert _looks_around(world, claimer) == 0
    time.now += 1_000
    claimer.claim(9)
    assert _looks_around(world, claimer) == 1


def _looks_around(world: World, claimer: Claimer) -> int:
    """How often everything is read again after a ring."""
    world.asked.clear()
    claimer.hurry()
    claimer.claim(9)
    return world.asked.count("settings")


def _many_idle_lanes(world: World) -> Claimer:
    """A claimer that has been everywhere a moment ago and found nothing."""
    for number in range(MANY_LANES + 1):
        world.fill(f"q{number}", 1)
    claimer = claimer_of(world)
    for _ in range(2):
        claimer.claim(9)
    world.asked.clear()
    return claimer


def test_many_idle_lanes_are_peeked_at_and_not_claimed_from(world: World) -> None:
    claimer = _many_idle_lanes(world)
    assert claimer.claim(9) == []
    assert world.asked.count("peek") == 1
    assert claims(world) == []


def test_a_peek_sends_the_claim_to_the_lanes_with_work_only(world: World) -> None:
    claimer = _many_idle_lanes(world)
    world.fill("q1", 1, 2_000)
    assert numbers(claimer.claim(9)) == [2_000]
    assert claims(world) == [("q1", 1, 9)]


@pytest.mark.parametrize(
    ("due", "seconds"), [({}, None), ({"q1": 0}, 0.0), ({"q0": 9_000_000, "q1": 1_500_000, "q2": 2_000_000}, 1.5)]
)
def test_a_peek_tells_how_soon_the_next_job_is_due(world: World, due: dict[str, int], seconds: float | None) -> None:
    claimer = _many_idle_lanes(world)
    world.due = due
    claimer.claim(9)
    assert claimer.due_in == seconds


@pytest.mark.parametrize(("lanes", "peeks"), [(MANY_LANES, 0), (MANY_LANES + 1, 2)])
def test_a_ring_sends_a_claimer_to_few_lanes_without_a_peek_and_to_many_by_a_look_around(
    world: World, lanes: int, peeks: int
) -> None:
    for number in range(lanes):
        world.fill(f"q{number}", 1)
    claimer = claimer_of(world)
    for _ in range(2):
        claimer.claim(9)
    world.asked.clear()
    claimer.hurry()
    claimer.claim(9)
    assert world.asked.count("peek") == peeks


def test_a_lane_that_looks_empty_is_still_looked_at_from_its_front_now_and_then(
    world: World, time: FakeMonotonic
) -> None:
    claimer = _many_idle_lanes(world)
    assert {lane.mark_at for lane in claimer.lanes} == {NOW - SHORT}
    world.fill("q1", 1, 1)
    for lane in claimer.lanes:
        lane.mark_at = NOW
    assert claimer.claim(9) == []
    time.now += 100
    assert numbers(claimer.claim(9)) == [1]


def test_the_mark_of_an_empty_lane_follows_the_time_of_the_database(world: World) -> None:
    world.fill("a", 1)
    claimer = claimer_of(world)
    claimer.claim(9)
    assert [lane.mark_at for lane in claimer.lanes] == [NOW - SHORT]
    peeking = _many_idle_lanes(world)
    for lane in peeking.lanes:
        lane.mark_at = 5
    peeking.claim(9)
    assert {lane.mark_at for lane in peeking.lanes} == {NOW - SHORT}
