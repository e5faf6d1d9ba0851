"""Spans and instants, as people write them and as the store keeps them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import InvalidOption, NaiveDatetime
from dibs.model.duration import from_instant, maybe_instant, micros, seconds, to_instant
from tests.unit.fakes import reproducible

CENTURY = 100 * 366 * 86_400
LAST = datetime(2255, 6, 5, 23, 47, 34, 740992, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "span"),
    [
        (0, 0.0),
        (1.5, 1.5),
        (timedelta(hours=1, microseconds=1), 3_600.000001),
        ("0s", 0.0),
        ("250ms", 0.25),
        ("90s", 90.0),
        ("15m", 900.0),
        ("2h", 7_200.0),
        ("1.5h", 5_400.0),
        ("1h30m", 5_400.0),
        ("1w2d3h4m5s6ms", 788_645.006),
        (" 90S ", 90.0),
        ("30m1h", 5_400.0),
        (CENTURY, float(CENTURY)),
        ("36600d", float(CENTURY)),
    ],
    ids=str,
)
def test_a_span_is_understood_in_every_spelling(written: Any, span: float) -> None:
    assert seconds(written) == pytest.approx(span, abs=1e-9)


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "s",
        "15",
        "1h 30m",
        "1h30",
        "h1",
        "5sec",
        "5 s",
        "-5s",
        "+5s",
        "1e3s",
        ".5s",
        "5.s",
        "1,5h",
        "5s\n6s",
        "5y",
        b"5s",
        None,
        [5],
        True,
        1j,
    ],
    ids=repr,
)
def test_what_is_no_span_is_refused_by_its_name(written: Any) -> None:
    with pytest.raises(InvalidOption, match=r"grace=.* is not a duration"):
        seconds(written, "grace")


@pytest.mark.parametrize(
    "written",
    [-1, -1e-9, timedelta(microseconds=-1), CENTURY + 1, "36601d", float("nan"), float("inf"), "9" * 400 + "s"],
)
def test_a_span_outside_a_century_is_refused(written: Any) -> None:
    with pytest.raises(InvalidOption, match="between 0 seconds and 100 years"):
        micros(written)


@reproducible
@given(st.integers(0, CENTURY * 1_000_000))
def test_every_microsecond_of_a_span_is_kept(count: int) -> None:
    assert micros(timedelta(microseconds=count)) == count


@pytest.mark.parametrize(
    ("written", "count"), [(0.1, 100_000), ("1ms", 1_000), (0.0000014, 1), (0.0000016, 2), (1.1, 1_100_000)]
)
def test_microseconds_are_rounded_and_not_cut(written: Any, count: int) -> None:
    assert micros(written) == count


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@reproducible
@given(st.datetimes(datetime(1, 1, 2), datetime(2255, 6, 4), timezones=ZONES))
def test_an_instant_comes_back_as_the_same_moment_in_utc(moment: datetime) -> None:
    back = from_instant(to_instant(moment))
    assert back == moment
    assert back.tzinfo is UTC
    assert to_instant(moment.isoformat()) == to_instant(moment)


@pytest.mark.parametrize(
    "text", ["2030-01-01T12:00:00Z", "2030-01-01 14:00:00+02:00", "20300101T120000Z", "2030-01-01T07:00-05:00"]
)
def test_text_with_a_zone_is_a_moment(text: str) -> None:
    assert from_instant(to_instant(text)) == datetime(2030, 1, 1, 12, tzinfo=UTC)


class _Europe(tzinfo):
    """A zone whose clocks go back from summer (+2) to winter (+1): the hour before comes twice."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1 if moment is not None and moment.fold else 2)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        return "Europe"


def test_the_two_passes_of_a_repeated_hour_are_two_instants() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=_Europe())
    assert to_instant(first.replace(fold=1)) - to_instant(first) == micros("1h")


class _Nowhere(tzinfo):
    """A zone that does not know its offset."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    "moment", [datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=_Nowhere()), "2030-01-01", "2030-01-01T00:00"], ids=str
)
def test_a_moment_without_a_zone_is_refused(moment: Any) -> None:
    with pytest.raises(NaiveDatetime, match=r"at=.* has no time zone"):
        to_instant(moment, "at")


@pytest.mark.parametrize("moment", ["", "soon", "12:00Z", 0, 1.5, date(2030, 1, 1), None, ["2030-01-01T00:00Z"]])
def test_what_is_no_moment_is_refused(moment: Any) -> None:
    with pytest.raises(InvalidOption, match="is not a point in time"):
        to_instant(moment)


def test_the_last_instant_is_the_last_one_a_float_holds_exactly() -> None:
    assert to_instant(LAST) == 2**53
    with pytest.raises(InvalidOption, match="2255"):
        to_instant(LAST + timedelta(microseconds=1))
    with pytest.raises(InvalidOption, match="2255"):
        to_instant(datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))))


def test_the_first_instants_lie_before_1970() -> None:
    assert to_instant(datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))) < to_instant("0001-01-01T00:00Z") < 0


def test_the_instant_zero_is_a_moment_and_not_an_absence() -> None:
    assert maybe_instant(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert maybe_instant(None) is None
