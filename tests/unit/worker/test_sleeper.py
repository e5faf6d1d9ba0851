"""How long an idle worker waits, and when producers are asked to ring."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dibs.store.roll import QUIET
from dibs.worker import sleeper as module
from dibs.worker.line import Line
from dibs.worker.options import check
from dibs.worker.sleeper import ALARM, BELL_POLL, FAST, LULL, SLOW, VIGIL, Sleeper
from tests.support.clock import FakeMonotonic
from tests.unit.fakes import drive

AFTER_A_LULL = LULL + 0.001


class FakeLine:
    """Writes down for how many seconds producers were asked to ring."""

    def __init__(self) -> None:
        self.spans: list[float] = []

    def call(self, make: Callable[[], Any]) -> Any:
        """Run the operation by hand."""
        found = drive(make())
        self.spans.append(found.params("worker_sleep")["span"] / 1_000_000)
        return found.answer


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The clock of this test; the dice always show the most."""
    fake = FakeMonotonic()
    monkeypatch.setattr(module, "time", fake)
    monkeypatch.setattr(module, "random", SimpleNamespace(uniform=lambda _least, most: most))
    return fake


def _sleeper(line: FakeLine, can_hear: bool, rings: bool, **options: Any) -> Sleeper:
    return Sleeper(cast("Line", line), "worker-1", check(None, options), can_hear, rings)


def test_while_jobs_keep_coming_polls_are_quick_and_nobody_rings(time: FakeMonotonic) -> None:
    line = FakeLine()
    sleeper = _sleeper(line, can_hear=True, rings=True)
    for _ in range(200):
        assert sleeper.worked() == 0.0
        time.now += LULL / 2
        assert sleeper.idle(None) == FAST
    assert line.spans == []


def test_after_a_lull_the_worker_asks_to_be_rung_and_looks_once_more(time: FakeMonotonic) -> None:
    line = FakeLine()
    sleeper = _sleeper(line, can_hear=True, rings=True)
    time.now += AFTER_A_LULL
    assert sleeper.idle(None) == 0.0
    assert line.spans == [ALARM]
    time.now += VIGIL
    assert sleeper.idle(None) == BELL_POLL
    assert line.spans == [ALARM]


def test_a_worker_that_falls_asleep_polls_on_until_every_producer_knows(time: FakeMonotonic) -> None:
    sleeper = _sleeper(FakeLine(), can_hear=True, rings=True)
    time.now += AFTER_A_LULL
    sleeper.idle(None)
    assert VIGIL >= 2 * QUIET
    time.now += VIGIL - 0.001
    assert sleeper.idle(None) == FAST
    time.now += 0.001
    assert sleeper.idle(None) == BELL_POLL


def test_the_wish_to_be_rung_is_renewed_before_it_runs_out(time: FakeMonotonic) -> None:
    line = FakeLine()
    sleeper = _sleeper(line, can_hear=True, rings=True)
    time.now += AFTER_A_LULL
    sleeper.idle(None)
    time.now += ALARM / 2
    assert sleeper.idle(None) == BELL_POLL
    time.now += 0.1
    assert sleeper.idle(None) == 0.0
    assert line.spans == [ALARM, ALARM]


def test_a_hundred_claims_in_a_second_end_the_ringing(time: FakeMonotonic) -> None:
    line = FakeLine()
    sleeper = _sleeper(line, can_hear=True, rings=True)
    time.now += AFTER_A_LULL
    sleeper.idle(None)
    for _ in range(99):
        time.now += 0.009
        sleeper.worked()
    assert line.spans == [ALARM]
    time.now += 0.009
    sleeper.worked()
    sleeper.worked()
    assert line.spans == [ALARM, 0.0]


def test_a_hundred_claims_in_a_longer_time_go_on_being_rung_for(time: FakeMonotonic) -> None:
    line = FakeLine()
    sleeper = _sleeper(line, can_hear=True, rings=True)
    time.now += AFTER_A_LULL
    sleeper.idle(None)
    for _ in range(300):
        time.now += 0.011
        sleeper.worked()
    assert line.spans == [ALARM]


@pytest.mark.parametrize(
    ("can_hear", "rings", "poll", "pause"),
    [
        (True, False, None, BELL_POLL),
        (True, False, 5, 5.0),
        (False, False, None, SLOW),
        (False, True, None, SLOW),
        (False, False, 5, 6.0),
    ],
)
def test_polls_slow_down_as_far_as_somebody_can_be_heard(
    time: FakeMonotonic, can_hear: bool, rings: bool, poll: Any, pause: float
) -> None:
    line = FakeLine()
    sleeper = _sleeper(line, can_hear, rings, poll=poll)
    time.now += AFTER_A_LULL
    assert sleeper.idle(None) == pytest.approx(pause)
    assert line.spans == []


@pytest.mark.parametrize(("due_in", "pause"), [(None, BELL_POLL), (9.0, BELL_POLL), (0.3, 0.3), (0.0, 0.0005)])
def test_nobody_oversleeps_the_next_job_that_is_due(time: FakeMonotonic, due_in: float | None, pause: float) -> None:
    sleeper = _sleeper(FakeLine(), can_hear=True, rings=False)
    time.now += AFTER_A_LULL
    assert sleeper.idle(due_in) == pause
