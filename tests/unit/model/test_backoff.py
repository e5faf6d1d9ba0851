"""How long a failed job waits: never less than nothing, never longer than its cap."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import InvalidOption
from dibs.model.backoff import DEFAULT_BACKOFF, Backoff, check_backoff
from dibs.model.json_text import decode, encode
from tests.unit.fakes import reproducible

SPANS = st.floats(0, 36_600 * 86_400.0)
JITTERS = st.floats(0, 1)
BACKOFFS = st.one_of(
    st.builds(Backoff.none),
    st.builds(Backoff.fixed, SPANS, JITTERS),
    st.builds(Backoff.polynomial, st.floats(0, 100), SPANS, JITTERS, SPANS),
    st.builds(Backoff.exponential, SPANS, st.floats(0, 100), JITTERS, SPANS),
)
GROWING = st.one_of(
    st.builds(Backoff.polynomial, st.floats(0, 100), SPANS, cap=SPANS),
    st.builds(Backoff.exponential, SPANS, st.floats(1, 100), st.just(0.0), SPANS),
)
FAILURES = st.integers(1, 2_000) | st.sampled_from([10**6, 10**18, 10**400])


@reproducible
@given(BACKOFFS, FAILURES, st.floats(0, 1))
def test_a_wait_is_never_negative_and_never_beyond_its_cap(backoff: Backoff, failures: int, spread: float) -> None:
    longest = max(timedelta(seconds=backoff.cap), timedelta(seconds=1))
    assert timedelta(0) <= backoff.delay(failures, spread) <= longest


@reproducible
@given(GROWING, st.integers(1, 300))
def test_without_jitter_a_later_failure_never_waits_less(backoff: Backoff, failures: int) -> None:
    assert backoff.delay(failures + 1) >= backoff.delay(failures)


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff.none(), [0, 0, 0, 0]),
        (Backoff.fixed("90s"), [90, 90, 90, 90]),
        (Backoff.polynomial(), [60, 240, 540, 960]),
        (Backoff.polynomial(0, 5), [5, 5, 5, 5]),
        (Backoff.polynomial(3, "1s", cap=20), [1, 8, 20, 20]),
        (Backoff.exponential(2, 3, jitter=0), [2, 6, 18, 54]),
        (Backoff.exponential(8, 0.5, jitter=0), [8, 4, 2, 1]),
        (Backoff.exponential(1, 2, jitter=0, cap=5), [1, 2, 4, 5]),
    ],
    ids=lambda value: getattr(value, "shape", ""),
)
def test_the_first_waits_of_each_shape_are_these(backoff: Backoff, waits: list[int]) -> None:
    assert [backoff.delay(failures).total_seconds() for failures in (1, 2, 3, 4)] == waits


@pytest.mark.parametrize("failures", [0, -1, -(10**30)])
def test_no_failure_at_all_waits_like_the_first_one(failures: int) -> None:
    for backoff in (Backoff.polynomial(), Backoff.exponential(3, jitter=0)):
        assert backoff.delay(failures) == backoff.delay(1)


def test_jitter_spreads_a_wait_evenly_to_both_sides() -> None:
    backoff = Backoff.fixed(100, jitter=0.2)
    assert [backoff.delay(1, dice).total_seconds() for dice in (0.0, 0.5, 1.0)] == [80, 100, 120]


def test_without_a_spread_given_the_dice_are_thrown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.75)
    assert Backoff.fixed(100, jitter=0.2).delay(1).total_seconds() == 110


def test_jitter_does_not_lift_a_wait_above_the_cap() -> None:
    assert Backoff.exponential(60, jitter=1, cap=60).delay(9, 1.0).total_seconds() == 60


@pytest.mark.parametrize(("base", "least"), [(30, 1.0), (1, 1.0), (0.25, 0.25), (0, 0.0)])
def test_full_jitter_never_shrinks_an_exponential_wait_to_nothing(base: float, least: float) -> None:
    assert Backoff.exponential(base, jitter=1).delay(1, 0.0).total_seconds() == least


def test_the_default_starts_at_a_second_and_ends_at_a_day() -> None:
    assert DEFAULT_BACKOFF.delay(1, 0.5) == timedelta(seconds=1)
    assert DEFAULT_BACKOFF.delay(2, 0.5) == timedelta(seconds=2)
    assert DEFAULT_BACKOFF.delay(40, 0.5) == timedelta(days=1)
    assert DEFAULT_BACKOFF.delay(5, 0.0) < DEFAULT_BACKOFF.delay(5, 1.0)


@reproducible
@given(BACKOFFS)
def test_a_backoff_that_was_stored_is_read_as_it_was(backoff: Backoff) -> None:
    assert Backoff.from_json(decode(encode(backoff.as_json()))) == backoff


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"shape": "none", "unit": 5}, Backoff.none()),
        ({"shape": "fixed"}, Backoff("fixed", 1.0, 2.0)),
        ({"shape": "exponential", "unit": "1m"}, Backoff.exponential("1m", jitter=0)),
        ({"shape": "polynomial", "unit": 3, "factor": 1, "cap": "1h"}, Backoff.polynomial(1, 3, cap=3_600)),
        ({"shape": "polynomial", "unit": "20h"}, Backoff.fixed("1d")),
    ],
)
def test_what_a_stored_backoff_leaves_out_has_a_default(stored: dict[str, Any], expected: Backoff) -> None:
    assert Backoff.from_json(stored).delay(3) == expected.delay(3)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"shape": None},
        {"shape": "Fixed"},
        {"shape": "fixed", "unit": -1},
        {"shape": "fixed", "unit": None},
        {"shape": "exponential", "factor": "2"},
        {"shape": "exponential", "jitter": 1.01},
        {"shape": "polynomial", "cap": "for ever"},
    ],
    ids=str,
)
def test_a_stored_backoff_that_makes_no_sense_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Backoff.from_json(stored)


@pytest.mark.parametrize(("factor", "jitter"), [(0, 0), (100, 1), (1, 1.0), (99.9, 0.0)])
def test_factor_and_jitter_may_touch_their_bounds(factor: float, jitter: float) -> None:
    backoff = Backoff.exponential(1, factor, jitter)
    assert (backoff.factor, backoff.jitter) == (float(factor), float(jitter))


@pytest.mark.parametrize(("factor", "jitter"), [(True, 0), (100.1, 0), (1, -0.1), (1, True), (None, 0), (1, 10**400)])
def test_factor_and_jitter_beyond_their_bounds_are_refused(factor: Any, jitter: Any) -> None:
    with pytest.raises(InvalidOption, match="between 0 and"):
        Backoff.exponential(1, factor, jitter)


@pytest.mark.parametrize("value", [None, "fixed", 30, {"shape": "none"}, Backoff])
def test_only_a_backoff_is_taken_for_one(value: Any) -> None:
    with pytest.raises(InvalidOption, match="is not a Backoff"):
        check_backoff(value)


@pytest.mark.parametrize("made", [Backoff("fixed", unit=-5), Backoff("wild"), Backoff("fixed", jitter=7)])  # type: ignore[arg-type]
def test_a_backoff_made_by_hand_is_checked_when_it_is_given(made: Backoff) -> None:
    with pytest.raises(InvalidOption):
        check_backoff(made)
