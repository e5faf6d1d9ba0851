"""What follows from the end of an attempt, at the boundary of every budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import InvalidOption, InvalidPayload, PayloadTooLarge
from dibs.model.backoff import Backoff
from dibs.model.json_text import decode, write
from dibs.model.outcome import (
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    Attempt,
    Back,
    Cancel,
    Control,
    Discard,
    Final,
    Policy,
    Problem,
    Retry,
    Snooze,
    after_control,
    after_crash,
    after_error,
    after_success,
    control_of,
    describe,
)
from tests.unit.fakes import reproducible

PROBLEM = Problem("error", "ValueError", "no")
POLICY = Policy(3, 2, Backoff.polynomial(1, 10))
"""Three attempts, two crashes, ten seconds more after each failure."""


def _attempt(attempts: int = 1, crashes: int = 0) -> Attempt:
    return Attempt("a", 7, attempts, crashes)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        (1, Back("a", 7, 10_000_000, problem=PROBLEM)),
        (2, Back("a", 7, 20_000_000, problem=PROBLEM)),
        (3, Final("a", 7, "dead", problem=PROBLEM)),
        (4, Final("a", 7, "dead", problem=PROBLEM)),
    ],
)
def test_a_failed_attempt_runs_again_until_it_was_the_last(attempts: int, expected: Final | Back) -> None:
    assert after_error(_attempt(attempts), POLICY, PROBLEM) == expected


def test_a_job_of_one_attempt_is_dead_at_its_first_failure() -> None:
    assert isinstance(after_error(_attempt(1), Policy(max_attempts=1), PROBLEM), Final)


@pytest.mark.parametrize("delay", [0, 1, 3_600_000_000])
def test_a_wait_that_is_asked_for_beats_the_backoff_even_if_it_is_none(delay: int) -> None:
    assert after_error(_attempt(2), POLICY, PROBLEM, delay) == Back("a", 7, delay, problem=PROBLEM)


def test_a_wait_that_is_asked_for_gives_no_further_attempt() -> None:
    assert after_error(_attempt(3), POLICY, PROBLEM, 0) == Final("a", 7, "dead", problem=PROBLEM)


def test_crashes_of_the_past_do_not_shorten_the_attempts_that_are_left() -> None:
    assert after_error(_attempt(2, crashes=99), POLICY, PROBLEM) == Back("a", 7, 20_000_000, problem=PROBLEM)


def test_a_failure_gives_no_attempt_back_and_is_no_crash() -> None:
    for settled in (after_error(_attempt(1), POLICY, PROBLEM), after_control(_attempt(1), POLICY, Retry(5))):
        assert isinstance(settled, Back)
        assert (settled.refund, settled.crash) == (0, 0)
    dead = after_error(_attempt(3), POLICY, PROBLEM)
    assert isinstance(dead, Final)
    assert (dead.crash, dead.result, dead.age) == (0, None, None)


@pytest.mark.parametrize(
    ("attempts", "crashes", "max_crashes", "expected"),
    [
        (1, 0, 2, Back("a", 7, 10_000_000, crash=1, problem=PROBLEM)),
        (2, 0, 2, Back("a", 7, 10_000_000, crash=1, problem=PROBLEM)),
        (2, 1, 3, Back("a", 7, 20_000_000, crash=1, problem=PROBLEM)),
        (2, 1, 2, Final("a", 7, "dead", problem=PROBLEM, crash=1)),
        (2, 5, 2, Final("a", 7, "dead", problem=PROBLEM, crash=1)),
        (1, 0, 1, Final("a", 7, "dead", problem=PROBLEM, crash=1)),
        (3, 0, 9, Final("a", 7, "dead", problem=PROBLEM, crash=1)),
        (4, 0, 9, Final("a", 7, "dead", problem=PROBLEM, crash=1)),
    ],
)
def test_a_crash_ends_the_job_when_either_budget_is_spent(
    attempts: int, crashes: int, max_crashes: int, expected: Final | Back
) -> None:
    policy = Policy(3, max_crashes, POLICY.backoff)
    assert after_crash(_attempt(attempts, crashes), policy, PROBLEM) == expected


@reproducible
@given(st.integers(1, 50), st.integers(0, 50), st.integers(1, 50), st.integers(1, 50))
def test_a_job_never_runs_more_often_than_either_budget_allows(
    attempts: int, crashes: int, max_attempts: int, max_crashes: int
) -> None:
    policy = Policy(max_attempts, max_crashes)
    failed = after_error(_attempt(attempts, crashes), policy, PROBLEM)
    crashed = after_crash(_attempt(attempts, crashes), policy, PROBLEM)
    assert isinstance(failed, Back) == (attempts < max_attempts)
    assert isinstance(crashed, Back) == (attempts < max_attempts and crashes + 1 < max_crashes)
    assert (failed[:2], crashed[:2]) == (("a", 7), ("a", 7))


@pytest.mark.parametrize("attempts", [1, 3, 99])
def test_a_snooze_gives_the_attempt_back_even_if_it_was_the_last(attempts: int) -> None:
    assert after_control(_attempt(attempts), POLICY, Snooze("1m")) == Back("a", 7, 60_000_000, refund=1)


@pytest.mark.parametrize(
    ("control", "attempts", "expected"),
    [
        (Retry(reason="busy"), 2, Back("a", 7, 20_000_000, problem=Problem("control", "Retry", "busy"))),
        (Retry(0, "busy"), 2, Back("a", 7, 0, problem=Problem("control", "Retry", "busy"))),
        (Retry(5, "busy"), 3, Final("a", 7, "dead", problem=Problem("control", "Retry", "busy"))),
        (Cancel("no use"), 3, Final("a", 7, "cancelled", problem=Problem("control", "Cancel", "no use"))),
        (Discard("no use"), 1, Final("a", 7, "discarded", problem=Problem("control", "Discard", "no use"))),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_a_handler_gets_what_it_asked_for(control: Control, attempts: int, expected: Final | Back) -> None:
    assert after_control(_attempt(attempts), POLICY, control) == expected


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (Snooze("1m"), "snoozed for 1m"),
        (Retry(), "the handler asked for a retry"),
        (Retry(5), "the handler asked for a retry"),
        (Cancel(), "cancelled by its handler"),
        (Discard(), "discarded by its handler"),
        (Discard(reason="of no use"), "of no use"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_control_without_words_has_a_reason_of_its_own(control: Control, reason: str) -> None:
    assert str(control) == reason


def test_a_reason_no_database_could_keep_is_cleaned_and_cut() -> None:
    settled = after_control(_attempt(), POLICY, Cancel("\x00" + "x" * 9_999))
    assert settled.problem is not None
    assert settled.problem.message.startswith("\ufffdx")
    assert len(settled.problem.message) == MESSAGE_LIMIT


@pytest.mark.parametrize("make", [lambda: Snooze(-1), lambda: Snooze("soon"), lambda: Retry(-1), lambda: Retry("soon")])
def test_an_impossible_wait_is_refused_where_the_handler_asks_for_it(make: Any) -> None:
    with pytest.raises(InvalidOption):
        make()


class Later(Snooze):
    """A control of the application's own."""

    def __init__(self, minutes: int, *, why: str) -> None:
        super().__init__(60 * minutes)
        self.why = why


@pytest.mark.parametrize(
    "control",
    [Snooze("1m"), Retry(), Retry(0, "x"), Cancel("x"), Discard(), Later(2, why="rain")],
    ids=lambda control: type(control).__name__,
)
def test_a_control_crosses_to_another_process_in_words(control: Control) -> None:
    copy = control_of(*decode(write(control.told())))
    assert isinstance(control, type(copy))
    assert str(copy) == str(control)
    assert after_control(_attempt(), POLICY, copy) == after_control(_attempt(), POLICY, control)


@pytest.mark.parametrize(
    ("result", "text"),
    [(None, None), (0, "0"), (False, "false"), ("", '""'), ([], "[]"), ({}, "{}"), ({"a": None}, '{"a":null}')],
)
def test_a_result_is_kept_also_if_it_is_empty(result: Any, text: str | None) -> None:
    assert after_success(_attempt(), result, 100) == Final("a", 7, "completed", text)


def test_a_result_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(PayloadTooLarge, match="The result has 6 bytes, the limit is 5"):
        after_success(_attempt(), "four", 5)
    with pytest.raises(InvalidPayload, match="The result"):
        after_success(_attempt(), float("nan"), 5)


def _fail_with_a_cause() -> None:
    try:
        raise KeyError("inner cause")
    except KeyError as error:
        raise ValueError("outer effect") from error


def test_a_problem_tells_type_message_and_the_way_of_an_error() -> None:
    with pytest.raises(ValueError) as raised:
        _fail_with_a_cause()
    problem = describe(raised.value, "error")
    assert problem[:3] == ("error", "ValueError", "outer effect")
    assert problem.traceback is not None
    assert "inner cause" in problem.traceback
    assert "in _fail_with_a_cause" in problem.traceback
    assert problem.traceback.endswith("ValueError: outer effect\n")


def test_the_end_of_a_long_traceback_is_what_is_kept() -> None:
    error = ValueError("x" * 3 * TRACEBACK_LIMIT + "the end")
    problem = describe(error)
    assert problem.traceback is not None
    assert problem.traceback.endswith("the end\n")
    assert len(problem.traceback) == TRACEBACK_LIMIT
    assert len(problem.message) == MESSAGE_LIMIT


def test_an_error_that_cannot_even_say_its_message_is_described() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    problem = describe(Mute(), "timeout")
    assert problem.kind == "timeout"
    assert problem.type.endswith("Mute")
    assert "Mute" in (problem.traceback or "")


def test_an_error_of_a_nested_class_and_without_message_is_named_in_full() -> None:
    class Outer:
        class Inner(Exception):
            pass

    problem = describe(Outer.Inner())
    assert problem.type.endswith("Outer.Inner")
    assert problem.message == ""


def test_a_problem_is_stored_as_clean_json() -> None:
    stored = decode(describe(ValueError("nul \x00, half a pair \ud800")).as_json())
    assert stored["type"] == "ValueError"
    assert stored["message"] == "nul \ufffd, half a pair ?"
    assert set(stored) == {"type", "message", "traceback"}
