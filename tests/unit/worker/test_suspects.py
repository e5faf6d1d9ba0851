"""When a job that has lost a holder may run, and what may be claimed beside it."""

from __future__ import annotations

import pytest

from dibs.worker import suspects as module
from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.suspects import ALONE, PATIENCE, SLOW, Suspects
from tests.support.clock import FakeMonotonic
from tests.unit.fakes import an_attempt


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The clock of this test."""
    fake = FakeMonotonic()
    monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def hold() -> Hold:
    """What the worker holds: nothing yet."""
    return Hold()


def _suspects(hold: Hold, last_chance: bool = False) -> Suspects:
    return Suspects(hold, lambda _attempt: last_chance)


def _claimed(hold: Hold, *numbers: int, started: float = 0.0) -> list[CurrentJob]:
    attempts = [an_attempt(number, crashes=1, started=started) for number in numbers]
    hold.add(attempts)
    return attempts


def _alone(hold: Hold, time: FakeMonotonic, last_chance: bool = False) -> tuple[Suspects, CurrentJob]:
    """A suspect that has just been started in an empty worker."""
    suspects = _suspects(hold, last_chance)
    [lone] = _claimed(hold, 1)
    assert suspects.choose([lone]) is lone
    lone._started = time.now
    return suspects, lone


def test_where_nobody_is_suspected_anything_may_be_claimed(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold)
    _claimed(hold, 1, 2, started=time.now)
    assert suspects.leave() == "any"
    assert suspects.choose([]) is None
    assert suspects.leave() == "any"


@pytest.mark.parametrize(("last_chance", "leave"), [(False, "innocents"), (True, "none")])
def test_a_suspect_that_has_not_begun_yet_counts_as_young(
    hold: Hold, time: FakeMonotonic, last_chance: bool, leave: str
) -> None:
    suspects, lone = _alone(hold, time, last_chance)
    lone._started = 0.0
    assert suspects.leave() == leave


@pytest.mark.parametrize(
    ("ran", "leave"), [(0.0, "innocents"), (ALONE - 0.1, "innocents"), (ALONE, "one"), (SLOW, "one")]
)
def test_beside_a_suspect_only_innocents_begin_for_a_while_and_then_jobs_come_one_by_one(
    hold: Hold, time: FakeMonotonic, ran: float, leave: str
) -> None:
    suspects, _ = _alone(hold, time)
    time.now += ran
    assert suspects.leave() == leave


@pytest.mark.parametrize(
    ("ran", "leave"), [(ALONE - 0.1, "none"), (ALONE, "innocents"), (SLOW - 0.1, "innocents"), (SLOW, "one")]
)
def test_beside_a_suspect_at_its_last_chance_only_innocents_run(
    hold: Hold, time: FakeMonotonic, ran: float, leave: str
) -> None:
    suspects, _ = _alone(hold, time, last_chance=True)
    time.now += ran
    assert suspects.leave() == leave


def test_a_suspect_counts_until_its_outcome_is_stored(hold: Hold, time: FakeMonotonic) -> None:
    suspects, lone = _alone(hold, time, last_chance=True)
    lone._settled = True
    assert suspects.leave() == "none"
    hold.remove([lone])
    assert suspects.leave() == "one"
    suspects.choose([])
    assert suspects.leave() == "any"


def test_a_suspect_begins_beside_what_runs_and_another_one_does_not(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold)
    _claimed(hold, 1, 2, started=time.now)
    first, second = _claimed(hold, 3, 4)
    assert suspects.choose([first, second]) is first
    hold.remove([second])
    assert suspects.leave() == "innocents"


def test_of_several_suspects_one_that_is_not_at_its_last_chance_goes_first(hold: Hold, time: FakeMonotonic) -> None:
    suspects = Suspects(hold, lambda attempt: attempt.id == last.id)
    last, mild = _claimed(hold, 1, 2)
    assert suspects.choose([last, mild]) is mild


def test_of_two_suspects_the_first_gets_its_last_chance_if_nothing_else_runs(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold, last_chance=True)
    batch = _claimed(hold, 1, 2)
    assert suspects.choose(batch) is None
    hold.remove(batch)
    [first] = _claimed(hold, 1)
    assert suspects.choose([first]) is first


def test_a_last_chance_waits_for_young_jobs_to_end_but_not_for_ever(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold, last_chance=True)
    _claimed(hold, 1, started=time.now)
    [suspect] = _claimed(hold, 2)
    assert suspects.choose([suspect]) is None
    hold.remove([suspect])
    time.now += PATIENCE - 0.1
    assert suspects.leave() == "none"
    time.now += 0.2
    assert suspects.leave() == "one"
    hold.add([suspect])
    assert suspects.choose([suspect]) is suspect


def test_a_last_chance_does_not_wait_for_jobs_that_have_run_for_long(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold, last_chance=True)
    _claimed(hold, 1, started=time.now - PATIENCE)
    [suspect] = _claimed(hold, 2)
    assert suspects.choose([suspect]) is suspect


def test_the_way_is_clear_as_soon_as_the_last_young_job_has_ended(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold, last_chance=True)
    young = _claimed(hold, 1, started=time.now)
    [suspect] = _claimed(hold, 2)
    suspects.choose([suspect])
    hold.remove([suspect])
    assert suspects.leave() == "none"
    hold.remove(young)
    assert suspects.leave() == "one"


def test_a_claim_without_suspects_ends_the_waiting(hold: Hold, time: FakeMonotonic) -> None:
    suspects = _suspects(hold, last_chance=True)
    _claimed(hold, 1, started=time.now)
    [suspect] = _claimed(hold, 2)
    suspects.choose([suspect])
    hold.remove([suspect])
    suspects.choose([])
    assert suspects.leave() == "any"
