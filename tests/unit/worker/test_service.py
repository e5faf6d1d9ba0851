"""A service survives whatever a round may meet, and waits longer and longer in between; its rounds are run by hand."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from dibs.worker import service as module
from dibs.worker.service import Service
from tests.support.clock import FakeMonotonic


class Fragile(Service):
    """Fails as long as it is told to."""

    name = "fragile"

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.rounds = 0

    def tick(self) -> float:
        """Answers a pause of a minute."""
        self.rounds += 1
        if self.broken:
            raise ConnectionError("away")
        return 60.0

    def round(self) -> float:
        """One round as the thread would do it."""
        return self._round(self.tick)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The clock of this test; the dice always show the most."""
    fake = FakeMonotonic()
    monkeypatch.setattr(module, "time", fake)
    monkeypatch.setattr(module, "random", SimpleNamespace(uniform=lambda _least, most: most))
    return fake


def test_a_round_that_succeeds_says_how_long_to_wait(time: FakeMonotonic) -> None:
    service = Fragile()
    time.now += 7
    assert service.silent_for == 7
    assert service.round() == 60.0
    assert service.silent_for == 0


def test_pauses_between_failures_grow_up_to_the_longest(time: FakeMonotonic) -> None:
    service = Fragile()
    service.broken = True
    pauses = [service.round() for _ in range(2_000)]
    assert pauses[:5] == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert set(pauses[5:]) == {service.longest_pause}
    assert service.rounds == 2_000


def test_after_a_success_the_pauses_begin_anew(time: FakeMonotonic, caplog: pytest.LogCaptureFixture) -> None:
    service = Fragile()
    service.broken = True
    for _ in range(3):
        service.round()
    service.broken = False
    with caplog.at_level(logging.INFO, "dibs.worker"):
        service.round()
    assert "fragile works again after 3 failures" in caplog.text
    service.broken = True
    assert service.round() == 0.2


def test_failures_are_silence_and_are_told_less_and_less_often(
    time: FakeMonotonic, caplog: pytest.LogCaptureFixture
) -> None:
    service = Fragile()
    service.broken = True
    with caplog.at_level(logging.WARNING, "dibs.worker"):
        for _ in range(20):
            time.now += 1
            service.round()
    assert service.silent_for == 20
    assert [record.args[1] for record in caplog.records if isinstance(record.args, tuple)] == [1, 2, 4, 8, 16]
    assert "ConnectionError: away" in caplog.text


def test_a_round_may_be_asked_for_and_an_end_too() -> None:
    service = Fragile()
    assert not service.stopping
    service.stop()
    assert service.stopping
    service._loop()
    assert service.rounds == 0


def test_a_service_that_was_never_started_has_ended() -> None:
    assert Fragile().join(0)
