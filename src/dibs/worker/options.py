"""Options of a worker, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from dibs.errors import InvalidOption
from dibs.model.duration import Duration, seconds
from dibs.model.names import check_name

WakeUps = Literal["auto", "poll"]


class WorkerOptions(TypedDict, total=False):
    """What `jobs.worker(queues, ...)` takes."""

    concurrency: int
    processes_limit: int
    lease: Duration | None
    grace: Duration
    wakeups: WakeUps
    poll: Duration | None
    batch: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked form of `WorkerOptions`."""

    queues: frozenset[str] | None
    caps: Mapping[str, int]
    concurrency: int = 16
    processes_limit: int = 2
    lease: float | None = None
    grace: float = 30.0
    wakeups: WakeUps = "auto"
    poll: float | None = None
    batch: int = 500
    name: str | None = None


def check(queues: Sequence[str] | Mapping[str, int] | None, options: Mapping[str, Any]) -> Settings:
    """Settings from what the user wrote; unknown options and impossible values are refused."""
    unknown = options.keys() - WorkerOptions.__annotations__.keys()
    if unknown:
        raise InvalidOption(
            f"{sorted(unknown)[0]!r} is not an option of a worker.",
            f"Options: queues, {', '.join(WorkerOptions.__annotations__)}.",
        )
    if isinstance(queues, str):
        raise InvalidOption("queues is a list of names.", f"Write queues=[{queues!r}].")
    caps = dict(queues) if isinstance(queues, Mapping) else {}
    given = {name: value for name, value in options.items() if value is not None}
    checked = {name: _CHECKS[name](value) for name, value in given.items()}
    for queue, cap in caps.items():
        _whole(f"queues[{queue!r}]", cap)
    chosen = None if queues is None else frozenset(check_name("queue", name) for name in queues)
    return Settings(chosen, caps, **checked)


def _whole(name: str, value: Any, most: int = 10_000) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidOption(f"{name}={value!r} must be a whole number from 1 to {most:,}.")
    return value


def _lease(value: Any) -> float:
    span = seconds(value, "lease")
    if span < 1:
        raise InvalidOption(
            f"lease={value!r} is shorter than a second, which a slow round trip may take.",
            "Leave lease out for the queue's own, or give a second or more.",
        )
    return span


def _wakeups(value: Any) -> WakeUps:
    if value not in ("auto", "poll"):
        raise InvalidOption(f"wakeups={value!r} is unknown.", 'Choose "auto" or "poll".')
    choice: WakeUps = value
    return choice


_CHECKS: dict[str, Any] = {
    "concurrency": lambda value: _whole("concurrency", value),
    "processes_limit": lambda value: _whole("processes_limit", value, 256),
    "lease": _lease,
    "grace": lambda value: seconds(value, "grace"),
    "wakeups": _wakeups,
    "poll": lambda value: max(0.001, seconds(value, "poll")),
    "batch": lambda value: _whole("batch", value, 5_000),
    "name": lambda value: check_name("worker", value),
}
