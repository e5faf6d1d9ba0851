"""Live settings of a queue, kept in the database and honoured by every worker within seconds."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

from dibs.errors import InvalidOption
from dibs.model import stored
from dibs.model.backoff import Backoff, check_backoff
from dibs.model.duration import Duration, seconds
from dibs.model.options import check_attempts

DEFAULT_LEASE = 60.0
DEFAULT_TIMEOUT = 600.0
DEFAULT_RETENTION: dict[str, float | None] = {
    "completed": 86_400.0,
    "cancelled": 86_400.0,
    "discarded": 86_400.0,
    "dead": None,
}
"""Seconds a finished job is kept, by outcome. None keeps it until somebody prunes it by hand."""

KEEP = "keep"


class QueueOptions(TypedDict, total=False):
    """What `jobs.configure(queue, ...)` takes. None removes a setting, so that the default counts again."""

    lease: Duration | None
    timeout: Duration | None
    max_attempts: int | None
    max_crashes: int | None
    backoff: Backoff | None
    retention: Duration | dict[str, Duration | None] | None


class QueueSettings(NamedTuple):
    """The settings of one queue; None where the default counts."""

    lease: float | None = None
    timeout: float | None = None
    max_attempts: int | None = None
    max_crashes: int | None = None
    backoff: Backoff | None = None
    retention: dict[str, float | None] | None = None

    @classmethod
    def read(cls, text: str | None) -> QueueSettings:
        """Decode what is stored."""
        value = stored.fields(text)
        return cls(
            stored.span(value.get("lease")),
            stored.span(value.get("timeout")),
            stored.count(value.get("max_attempts")),
            stored.count(value.get("max_crashes")),
            stored.backoff(value.get("backoff")),
            _kept(value.get("retention")),
        )

    def keep(self, outcome: str) -> float | None:
        """Seconds a job with this outcome stays in the history; None is for ever."""
        if self.retention and outcome in self.retention:
            return self.retention[outcome]
        return DEFAULT_RETENTION[outcome]


def _kept(value: Any) -> dict[str, float | None] | None:
    """Retention by outcome. What is not understood is kept for ever: nothing is deleted by a misunderstanding."""
    if not isinstance(value, dict):
        return None
    return {outcome: None if span == KEEP else stored.wait(span) for outcome, span in value.items()}


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """Queue options as they are stored: plain JSON, each value checked."""
    unknown = options.keys() - QueueOptions.__annotations__.keys()
    if unknown:
        raise InvalidOption(
            f"{sorted(unknown)[0]!r} is not a setting of a queue.",
            f"Settings: {', '.join(QueueOptions.__annotations__)}.",
        )
    return {name: None if value is None else _CHECKS[name](value) for name, value in options.items()}


def _lease(value: Any) -> float:
    span = seconds(value, "lease")
    if span < 1:
        raise InvalidOption(f"lease={value!r} is shorter than a second.", "A lease must outlive a slow round trip.")
    return span


def _retention(value: Any) -> dict[str, Any]:
    spans = value if isinstance(value, dict) else dict.fromkeys(DEFAULT_RETENTION, value)
    unknown = spans.keys() - DEFAULT_RETENTION.keys()
    if unknown:
        raise InvalidOption(f"{sorted(unknown)[0]!r} is no outcome.", f"Outcomes: {', '.join(DEFAULT_RETENTION)}.")
    return {name: KEEP if span is None else seconds(span, "retention") for name, span in spans.items()}


_CHECKS: dict[str, Any] = {
    "lease": _lease,
    "timeout": lambda value: seconds(value, "timeout"),
    "max_attempts": check_attempts,
    "max_crashes": lambda value: check_attempts(value, "max_crashes"),
    "backoff": lambda value: check_backoff(value).as_json(),
    "retention": _retention,
}
