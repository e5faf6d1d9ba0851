"""Taking expired leases back, without a database: how far a walk goes, and who is buried."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dibs.model.json_text import encode
from dibs.model.settings import checked
from dibs.store import reap as operations
from dibs.store import reaper as module
from dibs.store.claim import START
from dibs.store.reap import STRETCH, Walked, take_back, walk
from dibs.store.reaper import SHARE, Reaper
from dibs.store.statement import Rows
from tests.support.clock import FakeMonotonic
from tests.unit.fakes import Replies, a_dialect, drive


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], Walked(START, True, 0, [])),
        ([(50, "x", STRETCH - 1, 0, None)], Walked((50, "x"), True, 0, [])),
        ([(50, "x", STRETCH, 7, "")], Walked((50, "x"), False, 7, [])),
        ([(50, "x", STRETCH, 7, "a,b")], Walked((50, "x"), False, 7, ["a", "b"])),
        ([(50, "x", 1, 1, "a")], Walked((50, "x"), True, 1, ["a"])),
    ],
    ids=["an empty lane", "the end", "a full stretch", "two of a stretch", "one at the end"],
)
def test_a_walk_says_how_far_it_came_and_what_it_found(rows: list[tuple[Any, ...]], expected: Walked) -> None:
    assert drive(walk("mail", 100, START), {"walk": rows}).answer == expected


QUEUE = encode(checked({"max_attempts": 3, "max_crashes": 9})).decode()
BUDGETS: list[tuple[tuple[Any, ...], bool]] = [
    ((1, 0, None, None, None), False),
    ((5, 0, None, None, None), True),
    ((1, 2, None, None, None), True),
    ((3, 0, None, QUEUE, None), True),
    ((3, 0, 4, QUEUE, None), False),
    ((1, 3, None, QUEUE, None), False),
    ((1, 1, None, QUEUE, '{"max_crashes":2}'), True),
]


@pytest.mark.parametrize(("columns", "buried"), BUDGETS, ids=str)
def test_the_budgets_of_job_queue_and_default_decide_who_is_buried(columns: tuple[Any, ...], buried: bool) -> None:
    tried, crashes, max_attempts, queue, options = columns
    row = ("a", 7, tried, crashes, "worker-9", max_attempts, queue, options)
    found = drive(take_back(a_dialect(), ["a"]), {"lock_expired": [row], "archive": [("a",)], "put_back": [("a",)]})
    assert found.answer == ((0, 1) if buried else (1, 0))
    assert ("archive" in found.names, "put_back" in found.names) == (buried, not buried)
    errors = found.params("add_errors")["problems"]
    assert (errors["attempts"], errors["kinds"], errors["workers"]) == ([tried], ["lease lost"], ["worker-9"])
    assert found.names[0] == "atomic"


def test_a_lease_somebody_took_back_in_the_meantime_is_not_counted() -> None:
    rows = [(name, 7, 1, 0, "worker-9", None, None, None) for name in ("a", "b")]
    found = drive(take_back(a_dialect(), ["a", "b"]), {"lock_expired": rows, "put_back": [("b",)]})
    assert found.answer == (1, 0)


def test_nothing_is_settled_if_nothing_is_expired_any_more() -> None:
    found = drive(take_back(a_dialect(), ["a"]))
    assert found.answer == (0, 0)
    assert found.names == ["atomic", "lock_expired"]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The reaper's clock."""
    fake = FakeMonotonic()
    monkeypatch.setattr(module, "time", fake)
    return fake


class Lanes:
    """Lanes of numbered jobs, of which some were claimed and some have lost their holder."""

    def __init__(self, time: FakeMonotonic) -> None:
        self.jobs: dict[str, int] = {}
        self.claimed: dict[str, set[int]] = {}
        self.expired: dict[str, set[int]] = {}
        self.walks: list[tuple[str, int]] = []
        self.cost = 0.0
        self._time = time

    def add(self, queue: str, jobs: int, claimed: Iterable[int] = (), expired: Iterable[int] = ()) -> None:
        """A lane of so many jobs, numbered from 1."""
        self.jobs[queue] = jobs
        self.expired[queue] = set(expired)
        self.claimed[queue] = {*claimed, *expired}

    def call(self, make: Callable[[], Any]) -> Any:
        """Run an operation over these lanes."""
        replies: Replies = {
            "walk": self._walk,
            "lock_expired": self._lock,
            "put_back": lambda params: [(name,) for name in params["batch"]["ids"]],
            "archive": lambda params: [(name,) for name in params["ended"]["ids"]],
        }
        return drive(make(), replies).answer

    def _walk(self, params: dict[str, Any]) -> Rows:
        queue, start = params["queue"], params["from_at"]
        self.walks.append((queue, start))
        self._time.now += self.cost
        end = min(self.jobs[queue], start + params["limit"])
        stretch = set(range(start + 1, end + 1))
        if not stretch:
            return []
        expired = ",".join(f"{queue}-{number}" for number in sorted(stretch & self.expired[queue]))
        return [(end, str(end), len(stretch), len(stretch & self.claimed[queue]), expired or None)]

    def _lock(self, params: dict[str, Any]) -> Rows:
        ids = params["ids"].split(",")
        for name in ids:
            queue, number = name.split("-")
            self.expired[queue].remove(int(number))
        return [(name, 7, 5 if name.startswith("last") else 1, 0, "worker-9", None, None, None) for name in ids]


@pytest.fixture
def lanes(time: FakeMonotonic, monkeypatch: pytest.MonkeyPatch) -> Lanes:
    """No lanes yet; a stretch is ten jobs."""
    monkeypatch.setattr(operations, "STRETCH", 10)
    return Lanes(time)


def _sweep(reaper: Reaper, lanes: Lanes, **options: Any) -> int:
    return reaper.sweep([(queue, 100) for queue in lanes.jobs], **options)


def test_every_lost_lease_of_every_lane_is_taken_back(lanes: Lanes) -> None:
    lanes.add("a", 3, expired=[1, 3])
    lanes.add("b", 0)
    lanes.add("c", 57, claimed=range(1, 58), expired=[1, 10, 11, 40, 57])
    assert _sweep(Reaper(lanes.call, a_dialect()), lanes) == 7
    assert not any(lanes.expired.values())


def test_jobs_that_are_buried_count_as_taken_back_too(lanes: Lanes) -> None:
    lanes.add("a", 3, expired=[1])
    lanes.add("last", 3, expired=[2])
    assert _sweep(Reaper(lanes.call, a_dialect()), lanes) == 2


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_a_sweep_takes_back_no_more_than_it_was_told_and_goes_on_there(lanes: Lanes, limit: int) -> None:
    lanes.add("a", 30, expired=[2, 4, 12, 14])
    lanes.add("b", 30, expired=range(1, 31))
    reaper = Reaper(lanes.call, a_dialect())
    taken = [_sweep(reaper, lanes, limit=limit) for _ in range(40)]
    assert max(taken) == limit
    assert sum(taken) == 34


def test_without_time_a_long_lane_is_walked_a_stretch_at_each_sweep(lanes: Lanes) -> None:
    lanes.add("a", 45, claimed=range(1, 46), expired=[41])
    lanes.cost = 1.0
    reaper = Reaper(lanes.call, a_dialect())
    assert [_sweep(reaper, lanes, budget=0.5) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert lanes.walks == [("a", start) for start in (0, 10, 20, 30, 40)]


def test_a_lease_far_behind_jobs_that_were_never_claimed_is_found_in_time(lanes: Lanes) -> None:
    lanes.add("a", 95, expired=[1, 77])
    lanes.cost = 0.3
    reaper = Reaper(lanes.call, a_dialect())
    assert sum(_sweep(reaper, lanes, budget=1.0) for _ in range(10)) == 2


def test_a_reaper_that_a_standing_server_kept_waiting_walks_again_as_soon_as_usual(lanes: Lanes) -> None:
    lanes.add("a", 5)
    reaper = Reaper(lanes.call, a_dialect())
    for lanes.cost in (0.01, 6.0):
        _sweep(reaper, lanes)
    assert reaper.pause == pytest.approx(SHARE * 0.01)


def test_a_reaper_walks_no_more_than_its_share_of_the_time(lanes: Lanes) -> None:
    lanes.add("a", 5)
    lanes.cost = 0.25
    reaper = Reaper(lanes.call, a_dialect())
    _sweep(reaper, lanes)
    assert reaper.pause == SHARE * 0.25
