"""How many jobs a worker may take: in all, of a queue, and of those that need a process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.options import check
from dibs.worker.room import Room
from tests.unit.fakes import an_attempt


def _room(hold: Hold, stuck: int = 0, queues: dict[str, int] | None = None, **options: Any) -> Room:
    runners: dict[str, Any] = {"thread": SimpleNamespace(stuck=stuck), "loop": SimpleNamespace(stuck=0)}
    return Room(hold, runners, check(queues, options))


def _holding(*attempts: CurrentJob) -> Hold:
    hold = Hold()
    hold.add(attempts)
    return hold


def _some(count: int, **options: Any) -> list[CurrentJob]:
    return [an_attempt(number, **options) for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("concurrency", "held", "stuck", "room"),
    [(4, 0, 0, 4), (4, 3, 0, 1), (4, 4, 0, 0), (4, 6, 0, 0), (4, 0, 1, 3), (4, 2, 2, 0), (4, 0, 4, 0), (4, 0, 9, 0)],
)
def test_a_worker_takes_as_many_as_can_run_beside_what_it_holds(
    concurrency: int, held: int, stuck: int, room: int
) -> None:
    assert _room(_holding(*_some(held)), stuck, concurrency=concurrency).total() == room


def _fast(held: int, seconds: float = 0.01) -> Hold:
    hold = _holding(*_some(held))
    hold.pace.record(seconds)
    return hold


@pytest.mark.parametrize(("held", "room"), [(0, 22), (12, 10), (20, 2), (21, 0), (22, 0)])
def test_short_jobs_are_taken_ahead_of_those_that_run(held: int, room: int) -> None:
    assert _room(_fast(held), concurrency=2).total() == room


@pytest.mark.parametrize(("held", "room"), [(99, 21), (100, 20), (101, 0), (119, 0), (130, 0)])
def test_a_nearly_full_worker_waits_until_a_claim_is_worth_it(held: int, room: int) -> None:
    assert _room(_fast(held, 0.02), concurrency=20).total() == room


def test_a_worker_of_long_jobs_does_not_wait_for_a_batch() -> None:
    assert _room(_fast(19, 60.0), concurrency=20).total() == 1


def test_without_caps_and_processes_every_queue_has_room() -> None:
    assert _room(_holding(*_some(3))).of_queues() == {}


def test_a_cap_leaves_room_for_what_is_not_held_of_that_queue() -> None:
    hold = _holding(an_attempt(1, "a"), an_attempt(2, "a"), an_attempt(3, "b"))
    assert _room(hold, queues={"a": 3, "b": 1, "c": 2}).of_queues() == {"a": 1, "b": 0, "c": 2}


def _process(number: int, queue: str = "heavy") -> CurrentJob:
    return an_attempt(number, queue, "process")


def test_jobs_no_process_is_free_for_are_handed_back_and_their_queue_is_watched() -> None:
    batch = [_process(number) for number in range(1, 6)]
    room = _room(_holding(*batch), processes_limit=2)
    assert room.surplus(batch) == batch[2:]
    assert room.of_queues() == {"heavy": -3}


def test_as_many_jobs_as_there_are_processes_are_kept() -> None:
    batch = [_process(1), _process(2)]
    room = _room(_holding(*batch), processes_limit=2)
    assert room.surplus(batch) == []
    assert room.of_queues() == {"heavy": 0}


def test_a_queue_of_mixed_jobs_is_closed_only_while_no_process_is_free() -> None:
    batch = [_process(1, "mixed"), an_attempt(2, "mixed")]
    hold = _holding(*batch)
    room = _room(hold, processes_limit=2)
    assert room.surplus(batch) == []
    assert room.of_queues() == {}
    hold.add([_process(3, "mixed")])
    assert room.of_queues() == {"mixed": 0}
    hold.remove(batch)
    assert room.of_queues() == {}


def test_jobs_of_other_queues_do_not_change_what_is_known_of_one() -> None:
    heavy = _process(1)
    hold = _holding(heavy)
    room = _room(hold, processes_limit=2)
    room.surplus([heavy])
    room.surplus([an_attempt(2, "light")])
    assert room.of_queues() == {"heavy": 1}


def test_a_queue_that_brings_other_jobs_again_is_open_again() -> None:
    heavy = _process(1)
    room = _room(_holding(heavy), processes_limit=1)
    room.surplus([heavy])
    assert room.of_queues() == {"heavy": 0}
    room.surplus([an_attempt(2, "heavy")])
    assert room.of_queues() == {}


def test_the_smaller_of_cap_and_free_processes_counts() -> None:
    heavy = _process(1)
    for cap, room in ((5, 2), (2, 1)):
        small = _room(_holding(heavy), queues={"heavy": cap}, processes_limit=3)
        small.surplus([heavy])
        assert small.of_queues() == {"heavy": room}


def test_no_more_processes_are_counted_than_the_worker_may_run() -> None:
    batch = [_process(1), _process(2)]
    room = _room(_holding(*batch), concurrency=1, processes_limit=8)
    assert room.surplus(batch) == batch[1:]


def test_jobs_that_are_short_in_their_processes_are_held_ahead() -> None:
    batch = [_process(number) for number in range(1, 10)]
    hold = _holding(*batch)
    hold.pace_of_processes.record(0.05)
    room = _room(hold, processes_limit=2)
    assert room.surplus(batch) == batch[6:]
    assert room.of_queues() == {"heavy": -3}


def test_threads_do_not_take_the_place_of_processes() -> None:
    batch = [_process(1), _process(2)]
    hold = _holding(*batch, *[an_attempt(number) for number in range(10, 20)])
    assert _room(hold, processes_limit=2).surplus(batch) == []
