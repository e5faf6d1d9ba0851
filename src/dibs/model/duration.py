"""Spans of time and instants as people write them, and as microseconds, as the store keeps them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from dibs.errors import InvalidOption, NaiveDatetime
from dibs.model.names import shown

Duration: TypeAlias = float | int | str | timedelta
"""Seconds, a timedelta, or text such as "90s", "15m", "2h", "1d", "1h30m"."""

Micros: TypeAlias = int
"""Microseconds: since 1970 in UTC for an instant, or of a span."""

SECOND = 1_000_000
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 100 * 366 * 86_400
_LATEST = 2**53
"""Microseconds: the last instant that floats and JSON hold exactly."""


def seconds(value: Duration, name: str = "duration") -> float:
    """Return a span in seconds; refuse what is negative, not finite or longer than a century."""
    span = _seconds(value, name)
    if not math.isfinite(span) or span < 0 or span > _LONGEST:
        raise InvalidOption(f"{name}={shown(value)} must be between 0 seconds and 100 years.")
    return span


def lasting(value: Duration, name: str) -> float:
    """Return a span in seconds that must be longer than nothing."""
    span = seconds(value, name)
    if span == 0:
        raise InvalidOption(f"{name}={value!r} lasts no time at all.", f"Leave {name} out for the default.")
    return span


def micros(value: Duration, name: str = "duration") -> Micros:
    """Return a span in whole microseconds."""
    return round(seconds(value, name) * SECOND)


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) <= _LONGEST else math.inf
    if isinstance(value, str):
        text = value.strip().lower()
        parts = _PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _UNITS[unit] for number, unit in parts)
    raise InvalidOption(
        f"{name}={value!r} is not a duration.", 'Give seconds, a timedelta, or text such as "90s" or "15m".'
    )


def to_instant(value: Any, name: str = "run_at") -> Micros:
    """Return an aware datetime (or ISO text with a zone) as an instant; a naive one is refused."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        raise InvalidOption(f"{name}={value!r} is not a point in time.", "Give an aware datetime.")
    if moment.utcoffset() is None:
        raise NaiveDatetime(f"{name}={value!r} has no time zone, so it could mean any of 38 instants.")
    instant = (moment - _EPOCH) // timedelta(microseconds=1)
    if instant > _LATEST:
        raise InvalidOption(f"{name}={value!r} lies after the year 2255.", "Nobody will be there to run it.")
    return instant


def from_instant(instant: Micros) -> datetime:
    """Return an instant as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=instant)


def maybe_instant(instant: Micros | None) -> datetime | None:
    """`from_instant` for a value that may be absent."""
    return None if instant is None else from_instant(instant)
