"""What tests of the store's parts share: a clock, and lanes that are made up."""

from __future__ import annotations

import pytest

from dibs.store import claimer
from tests.support.clock import FakeMonotonic
from tests.unit.store.made_up_lanes import World


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The claimer's clock."""
    fake = FakeMonotonic()
    monkeypatch.setattr(claimer, "time", fake)
    return fake


@pytest.fixture
def world(time: FakeMonotonic) -> World:
    """No lanes yet."""
    return World()
