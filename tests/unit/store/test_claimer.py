"""Which lane a claimer visits next, how much it takes, and when it looks around: over lanes that are made up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from dibs.errors import DatabaseUnreachable
from dibs.model.job import Job, Row
from dibs.model.json_text import encode
from dibs.model.lane import LIVELY, SHORT
from dibs.store import claimer as module
from dibs.store.claimer import MANY_LANES, REFRESH, Claimer
from dibs.store.statement import Rows
from tests.support.clock import FakeMonotonic
from tests.unit.fakes import a_dialect, a_row, drive

NOW = a_row(1_000).available_at


class World:
    """Lanes full of rows, as a claimer meets them: what is claimed is gone."""

    def __init__(self) -> None:
        self.lanes: dict[tuple[str, int], list[Row]] = defaultdict(list)
        self.hidden: set[tuple[str, int]] = set()
        self.settings: dict[str, str] = {}
        self.unreachable: set[str] = set()
        self.due: dict[str, int] = {}
        self.asked: list[Any] = []
        self.claims: list[dict[str, Any]] = []
        self.peeked: list[str] = []

    def fill(self, queue: str, priority: int, *numbers: int) -> None:
        """Put jobs into a lane."""
        self.lanes[queue, priority] += [a_row(number) for number in numbers]

    def call(self, make: Callable[[], Any]) -> Any:
        """Run an operation over these lanes."""
        replies: dict[str, Any] = {
            "lanes": lambda _: [(*lane, NOW) for lane in self.lanes if lane not in self.hidden],
            "discover_lanes": lambda _: list(self.lanes),
            "settings": lambda _: [(queue, False, text) for queue, text in self.settings.items()],
            "peek": self._peek,
            "claim": self._claim,
        }
        driven = drive(make(), replies)
        self.asked += [request for request in driven.names if request != "claim"]
        return driven.answer

    def _peek(self, params: dict[str, Any]) -> Rows:
        batch = params["lanes"]
        self.peeked += batch["queues"]
        marks = zip(batch["marks_at"], batch["mark_ids"], strict=True)
        lanes = zip(batch["queues"], batch["priorities"], marks, strict=True)
        return [
            (queue, priority, bool(self._due(queue, priority, mark)), self.due.get(queue))
            for queue, priority, mark in lanes
        ]

    def _due(self, queue: str, priority: int, mark: tuple[int, str]) -> list[Row]:
        return [row for row in self.lanes[queue, priority] if (row.available_at, row.id) >= mark]

    def _claim(self, params: dict[str, Any]) -> Rows:
        lane = params["queue"], params["priority"]
        self.asked.append((*lane, params["limit"]))
        self.claims.append(params)
        if params["queue"] in self.unreachable:
            raise DatabaseUnreachable("gone.")
        due = self._due(*lane, (params["mark_at"], params["mark_id"]))[: params["limit"]]
        self.lanes[lane] = [row for row in self.lanes[lane] if row not in due]
        return list(due)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The claimer's clock."""
    fake = FakeMonotonic()
    monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def world(time: FakeMonotonic) -> World:
    """No lanes yet."""
    return World()


def _claimer(world: World, **options: Any) -> Claimer:
    return Claimer(world.call, a_dialect(), "worker-1", **options)


def _numbers(jobs: list[Job]) -> list[int]:
    return [int(job.id[-4:]) for job in jobs]


def _claims(world: World) -> list[Any]:
    found = [each for each in world.asked if isinstance(each, tuple)]
    world.asked.clear()
    return found


def test_higher_priorities_come_first_and_the_rest_fills_up(world: World) -> None:
    world.fill("mail", 1, 1, 2, 3)
    world.fill("mail", 9, 4, 5)
    jobs = _claimer(world).claim(4)
    assert _numbers(jobs) == [4, 5, 1, 2]
    assert [(job.queue, job.priority, job.locked_by) for job in jobs[:3:2]] == [
        ("mail", 9, "worker-1"),
        ("mail", 1, "worker-1"),
    ]
    assert _claims(world) == [("mail", 9, 4), ("mail", 1, 2)]


def test_no_further_lane_is_visited_once_there_is_enough(world: World) -> None:
    world.fill("mail", 9, 1, 2)
    world.fill("mail", 1, 3)
    assert _numbers(_claimer(world).claim(2)) == [1, 2]
    assert _claims(world) == [("mail", 9, 2)]


def test_queues_of_one_priority_take_turns(world: World) -> None:
    world.fill("a", 1, *range(1, 9))
    world.fill("b", 1, *range(11, 19))
    claimer = _claimer(world)
    assert [claimer.claim(1)[0].queue for _ in range(6)] == ["a", "b", "a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("room", "expected"),
    [({}, [1, 2, 3, 4]), ({"a": 1}, [1, 3, 4, 5]), ({"a": 0}, [3, 4, 5]), ({"a": -2, "b": 1}, [3])],
)
def test_a_queue_gives_no_more_than_there_is_room_for(world: World, room: dict[str, int], expected: list[int]) -> None:
    world.fill("a", 9, 1)
    world.fill("a", 8, 2)
    world.fill("b", 7, 3, 4, 5)
    assert _numbers(_claimer(world).claim(4, rooms=room)) == expected
    assert room in ({}, {"a": 1}, {"a": 0}, {"a": -2, "b": 1})


def test_rooms_are_those_of_this_claim_and_not_of_the_last_one(world: World) -> None:
    world.fill("a", 1, 1, 2, 3)
    claimer = _claimer(world)
    assert _numbers(claimer.claim(9, rooms={"a": 1})) == [1]
    assert _numbers(claimer.claim(9)) == [2, 3]


def test_only_the_queues_asked_for_are_known(world: World) -> None:
    world.fill("a", 1, 1)
    world.fill("b", 1, 2)
    world.fill("b", 7, 3)
    world.hidden = {("b", 7)}
    claimer = _claimer(world, queues=frozenset({"b"}))
    assert _numbers(claimer.claim(9)) == [3, 2]
    world.fill("a", 9, 4)
    world.hidden = {("a", 9)}
    assert claimer.claim(9, thorough=True) == []


def test_what_other_lanes_gave_is_kept_when_the_database_goes_away(world: World) -> None:
    world.fill("a", 9, 1)
    world.fill("b", 1, 2)
    world.unreachable = {"b"}
    assert _numbers(_claimer(world).claim(9)) == [1]


def test_a_database_that_is_away_before_anything_was_claimed_is_an_error(world: World) -> None:
    world.fill("b", 1, 2)
    world.unreachable = {"b"}
    with pytest.raises(DatabaseUnreachable):
        _claimer(world).claim(9)


def test_lanes_and_settings_are_read_again_after_a_second_and_not_before(world: World, time: FakeMonotonic) -> None:
    world.fill("a", 1, *range(1, 20))
    claimer = _claimer(world)
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
    claimer = _claimer(world)
    assert claimer.lanes == []
    assert _numbers(claimer.claim(9, thorough=True)) == [1]
    assert world.asked.count("discover_lanes") == 1


def test_an_idle_claimer_looks_for_new_lanes_now_and_then(world: World, time: FakeMonotonic) -> None:
    claimer = _claimer(world)
    assert claimer.claim(9) == []
    world.fill("new", 1, 1)
    world.hidden = {("new", 1)}
    assert claimer.claim(9) == []
    assert world.asked.count("discover_lanes") == 1
    time.now += 10
    assert _numbers(claimer.claim(9)) == [1]
    assert world.asked.count("discover_lanes") == 2


def test_a_claimer_that_never_runs_dry_finds_a_lane_nobody_has_written_down(world: World, time: FakeMonotonic) -> None:
    world.fill("old", 1, *range(1, 100))
    claimer = _claimer(world)
    claimer.claim(9)
    world.fill("old", 150, 200)
    world.hidden = {("old", 150)}
    assert _numbers(claimer.claim(2)) == [10, 11]
    time.now += 10
    assert _numbers(claimer.claim(2)) == [200, 12]


@pytest.mark.parametrize(("pause", "peeked"), [(0, 2), (10_000, MANY_LANES + 3)])
def test_lanes_that_have_long_been_quiet_are_peeked_at_when_there_is_time_for_it(
    world: World, time: FakeMonotonic, pause: float, peeked: int
) -> None:
    for number in range(MANY_LANES + 2):
        world.fill(f"quiet{number}", 1)
    world.fill("busy", 1, *range(1, 100))
    claimer = _claimer(world)
    claimer.claim(1)
    world.due = {"quiet1": 0}
    time.now, time.step = time.now + LIVELY, 1.0
    claimer.claim(1)
    time.now, time.step = time.now + pause, 0.0
    world.peeked.clear()
    assert len(claimer.claim(1)) == 1
    assert len(world.peeked) == peeked  # those with work or something due at least, and all of them now and then


def test_after_a_ring_all_is_looked_at_again_but_not_for_ever(world: World, time: FakeMonotonic) -> None:
    claimer = _claimer(world)
    claimer.claim(9)
    world.fill("new", 1, 1)
    claimer.hurry()
    assert _numbers(claimer.claim(9)) == [1]
    read = world.asked.count("lanes")
    claimer.claim(9)
    assert world.asked.count("lanes") == read


def test_a_dear_look_around_is_not_taken_at_every_ring(world: World, time: FakeMonotonic) -> None:
    world.fill("a", 1)
    claimer = _claimer(world)
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
    claimer = _claimer(world)
    for _ in range(2):
        claimer.claim(9)
    world.asked.clear()
    return claimer


def test_many_idle_lanes_are_peeked_at_and_not_claimed_from(world: World) -> None:
    claimer = _many_idle_lanes(world)
    assert claimer.claim(9) == []
    assert world.asked.count("peek") == 1
    assert _claims(world) == []


def test_a_peek_sends_the_claim_to_the_lanes_with_work_only(world: World) -> None:
    claimer = _many_idle_lanes(world)
    world.fill("q1", 1, 2_000)
    assert _numbers(claimer.claim(9)) == [2_000]
    assert _claims(world) == [("q1", 1, 9)]


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
    claimer = _claimer(world)
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
    assert _numbers(claimer.claim(9)) == [1]


def test_the_mark_of_an_empty_lane_follows_the_time_of_the_database(world: World) -> None:
    world.fill("a", 1)
    claimer = _claimer(world)
    claimer.claim(9)
    assert [lane.mark_at for lane in claimer.lanes] == [NOW - SHORT]
    peeking = _many_idle_lanes(world)
    for lane in peeking.lanes:
        lane.mark_at = 5
    peeking.claim(9)
    assert {lane.mark_at for lane in peeking.lanes} == {NOW - SHORT}


def test_the_mark_of_a_lane_with_work_stays_with_the_work(world: World) -> None:
    world.fill("a", 1, 1, 2)
    claimer = _claimer(world)
    jobs = claimer.claim(1)
    [lane] = claimer.lanes
    assert (lane.mark_at, lane.mark_id) == (jobs[0].row.available_at, jobs[0].id)


def _marked(world: World, number: int) -> Claimer:
    """A claimer that has just looked everywhere, with its mark at that job."""
    world.fill("a", 1, number)
    claimer = _claimer(world)
    claimer.claim(9)
    world.claims.clear()
    return claimer


def test_somebody_who_asks_once_finds_what_lies_just_behind_the_mark(world: World) -> None:
    claimer = _marked(world, 5)
    world.fill("a", 1, 1)
    assert claimer.claim(9) == []
    assert _numbers(claimer.claim(9, thorough=True)) == [1]
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
    assert _numbers(claimer.claim(9, thorough=True)) == [6]


def test_a_claim_of_innocents_passes_over_suspects_and_leaves_the_mark(world: World) -> None:
    claimer = _marked(world, 1)
    before = [(lane.mark_at, lane.mark_id) for lane in claimer.lanes]
    world.fill("a", 1, 7)
    assert _numbers(claimer.claim(9, innocents=True)) == [7]
    assert world.claims[-1]["crashes"] == 0
    assert [(lane.mark_at, lane.mark_id) for lane in claimer.lanes] == before
    claimer.claim(9)
    assert world.claims[-1]["crashes"] > 1_000_000


def test_a_claim_is_for_its_worker_and_as_long_as_the_lease(world: World) -> None:
    world.fill("a", 1, 1)
    _claimer(world, lease=1.5).claim(3)
    [claim] = world.claims
    assert (claim["worker"], claim["lease"], claim["limit"]) == ("worker-1", 1_500_000, 3)


def test_jobs_that_were_handed_back_are_claimed_again_from_their_places(world: World) -> None:
    world.fill("a", 1, 1, 2, 3)
    claimer = _claimer(world)
    jobs = claimer.claim(3)
    world.fill("a", 1, 1, 2)
    claimer.rewind(jobs[:2])
    [lane] = claimer.lanes
    assert (lane.mark_at, lane.mark_id) == (jobs[0].row.available_at, jobs[0].id)
    assert _numbers(claimer.claim(3)) == [1, 2]


@pytest.mark.parametrize(("own", "queue", "lease"), [(None, None, 60.0), (None, 90.0, 90.0), (5.0, 90.0, 5.0)])
def test_the_lease_of_the_worker_beats_that_of_the_queue(
    world: World, own: float | None, queue: float | None, lease: float
) -> None:
    world.fill("a", 1, 1)
    if queue is not None:
        world.settings["a"] = encode({"lease": queue}).decode()
    claimer = _claimer(world, lease=own)
    claimer.claim(1)
    assert claimer.lease_of("a") == lease
    assert claimer.lease_of("elsewhere") == (own or 60.0)
