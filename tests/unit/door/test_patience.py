"""How long a wait bears that the database is away, by a clock of the test's."""

from __future__ import annotations

import pytest

from dibs.door import patience
from dibs.door.patience import BEARABLE, Patience
from dibs.errors import DatabaseUnreachable, NotFound
from tests.support.clock import FakeMonotonic


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonic:
    """The time of the module."""
    found = FakeMonotonic()
    monkeypatch.setattr(patience, "time", found)
    return found


def _away() -> str:
    raise DatabaseUnreachable("gone.")


def test_a_wait_without_a_deadline_bears_a_minute_on_end(time: FakeMonotonic) -> None:
    wait = Patience(None)
    assert wait.look(_away) is None
    time.now += BEARABLE - 1
    assert wait.look(_away) is None
    assert wait.look(lambda: "back") == "back"
    time.now += 10 * BEARABLE
    assert wait.look(_away) is None, "a new absence is borne anew"
    time.now += BEARABLE
    with pytest.raises(DatabaseUnreachable):
        wait.look(_away)


def test_a_wait_with_a_deadline_bears_all_until_then(time: FakeMonotonic) -> None:
    wait = Patience(1_000)
    assert wait.look(_away) is None
    time.now += 999
    assert wait.look(_away) is None
    time.now += 1
    with pytest.raises(DatabaseUnreachable):
        wait.look(_away)


def test_a_wait_of_no_time_bears_nothing(time: FakeMonotonic) -> None:
    with pytest.raises(DatabaseUnreachable):
        Patience(0).look(_away)


def test_other_trouble_is_not_borne_at_all(time: FakeMonotonic) -> None:
    def missing() -> str:
        raise NotFound("no such job.")

    with pytest.raises(NotFound):
        Patience(None).look(missing)


def test_pauses_grow_and_the_last_look_is_at_the_deadline(time: FakeMonotonic) -> None:
    found = []
    for pause in Patience(1).pauses(0.01):
        found.append(pause)
        time.now += pause
    assert found[:3] == [0.01, 0.015, 0.0225]
    assert max(found) == 0.25
    assert found[-1] == 0.0
    assert sum(found) == pytest.approx(1)


def test_a_wait_of_no_time_looks_once(time: FakeMonotonic) -> None:
    assert list(Patience(0).pauses(0.01)) == [0.0]


def test_a_wait_without_a_deadline_never_makes_its_last_look(time: FakeMonotonic) -> None:
    pauses = Patience(None).pauses(0.002)
    assert [next(pauses) for _ in range(50)][-1] == 0.25
