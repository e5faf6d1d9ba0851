"""What a worker holds: each job once, by its latest attempt."""

from __future__ import annotations

from dibs.worker.hold import Hold
from tests.unit.fakes import an_attempt


def test_an_old_attempt_does_not_take_the_new_one_of_its_job_along() -> None:
    hold = Hold()
    old, new = an_attempt(1, token=1), an_attempt(1, token=2)
    hold.add([old])
    hold.add([new])
    hold.remove([old])
    assert not hold.holds(old)
    assert hold.holds(new)
    assert not hold.drop(old)
    assert hold.attempts() == [new]


def test_of_two_that_let_go_of_an_attempt_one_is_the_first() -> None:
    hold, attempt = Hold(), an_attempt(1)
    hold.add([attempt])
    assert [hold.drop(attempt), hold.drop(attempt)] == [True, False]
    assert len(hold) == 0


def test_letting_go_of_what_is_not_held_does_nothing() -> None:
    hold, held = Hold(), an_attempt(1)
    hold.add([held])
    hold.remove([an_attempt(1), an_attempt(2)])
    assert hold.attempts() == [held]


def test_what_is_held_is_counted_by_queue() -> None:
    hold = Hold()
    hold.add([an_attempt(1, "a"), an_attempt(2, "a"), an_attempt(3, "b")])
    assert hold.by_queue() == {"a": 2, "b": 1}
    assert hold.by_queue()["c"] == 0


def test_a_list_of_attempts_is_not_changed_by_what_comes_later() -> None:
    hold = Hold()
    hold.add([an_attempt(1)])
    before = hold.attempts()
    hold.add([an_attempt(2)])
    assert (len(before), len(hold)) == (1, 2)
