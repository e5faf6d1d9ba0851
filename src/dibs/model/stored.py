"""Reading settings back. A newer dibs, or a person with SQL, may have written what this version does not know.

Writing is strict, reading is not: what is not understood counts as not said, so that no row stops a worker.
"""

from __future__ import annotations

from typing import Any

from dibs.errors import InvalidOption
from dibs.model.backoff import Backoff
from dibs.model.json_text import decode


def fields(text: str | None) -> dict[str, Any]:
    """The members of a stored JSON object."""
    if not text:
        return {}
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def span(value: Any) -> float | None:
    """A positive number of seconds."""
    return float(value) if _is_number(value) and 0 < value < float("inf") else None


def wait(value: Any) -> float | None:
    """A number of seconds, zero or more."""
    return 0.0 if _is_number(value) and value == 0 else span(value)


def count(value: Any) -> int | None:
    """A positive whole number."""
    return value if isinstance(value, int) and _is_number(value) and value > 0 else None


def backoff(value: Any) -> Backoff | None:
    """A backoff of a shape this version knows."""
    try:
        return Backoff.from_json(value) if isinstance(value, dict) else None
    except InvalidOption:
        return None


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
