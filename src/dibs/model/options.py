"""What one enqueue may ask for, checked once and carried as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, TypedDict

from dibs.errors import InvalidOption
from dibs.model.backoff import Backoff, check_backoff
from dibs.model.duration import Duration, Micros, lasting, micros, to_instant
from dibs.model.json_text import decode, encode
from dibs.model.names import check_key, check_name, check_priority, shown

OnConflict = Literal["existing", "skip", "replace", "raise"]
_ON_CONFLICT = ("existing", "skip", "replace", "raise")
_TAG_LIMIT = 16


class EnqueueOptions(TypedDict, total=False):
    """Options of one enqueue. Every surface of dibs (library, SQL, command line) uses these names."""

    queue: str | None
    priority: int | None
    delay: Duration | None
    run_at: datetime | str | None
    at: datetime | str | None
    unique: str | None
    on_conflict: OnConflict
    max_attempts: int | None
    timeout: Duration | None
    backoff: Backoff | None
    tags: Sequence[str]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The checked form of `EnqueueOptions`, with the task's defaults filled in."""

    queue: str = "default"
    priority: int = 100
    delay: Micros | None = None
    run_at: Micros | None = None
    unique: str | None = None
    on_conflict: OnConflict = "existing"
    max_attempts: int | None = None
    extra: str | None = None

    @property
    def plain(self) -> bool:
        """Whether a bulk load can store the job: no key to compare, no time to work out."""
        return self.unique is None and self.delay is None and self.run_at is None

    def override(self, options: Mapping[str, Any]) -> JobOptions:
        """These options with `options` on top; unknown names and impossible values are refused."""
        unknown = options.keys() - EnqueueOptions.__annotations__.keys()
        if unknown:
            raise InvalidOption(
                f"{sorted(unknown)[0]!r} is not an option of enqueue.",
                f"Options: {', '.join(EnqueueOptions.__annotations__)}.",
            )
        given = {name: value for name, value in options.items() if value is not None}
        if not given:
            return self
        changes = {field: check(given) for field, names, check in _FIELDS if names & given.keys()}
        extra = _extra(given)
        return replace(self, **changes, extra=self._with(extra)) if extra else replace(self, **changes)

    def limited(self, max_crashes: int | None) -> JobOptions:
        """These options with a task's crash budget: it travels with the job, for reapers that do not know the task."""
        return self if max_crashes is None else replace(self, extra=self._with({"max_crashes": max_crashes}))

    def _with(self, extra: dict[str, Any]) -> str:
        return encode({**(decode(self.extra) if self.extra else {}), **extra}, "options").decode()


def check_attempts(value: Any, name: str = "max_attempts") -> int:
    """Return a limit of attempts: 1 to 1,000."""
    return whole(name, value, 1_000)


def whole(name: str, value: Any, most: int) -> int:
    """Return a whole number from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidOption(f"{name}={shown(value)} must be a whole number from 1 to {most:,}.")
    return value


def _due(given: Mapping[str, Any]) -> Micros:
    if "at" in given and "run_at" in given:
        raise InvalidOption("at and run_at are two names of one option.", "Give one of them.")
    if "delay" in given:
        raise InvalidOption("delay and run_at exclude each other.", "Give one of them.")
    name = "run_at" if "run_at" in given else "at"
    return max(0, to_instant(given[name], name))  # the past is stored as now


def _on_conflict(given: Mapping[str, Any]) -> str:
    choice = given["on_conflict"]
    if choice not in _ON_CONFLICT:
        raise InvalidOption(f"on_conflict={choice!r} is unknown.", f"Choose {', '.join(_ON_CONFLICT)}.")
    return str(choice)


def _extra(given: Mapping[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if "timeout" in given:
        extra["timeout"] = lasting(given["timeout"], "timeout")
    if "backoff" in given:
        extra["backoff"] = check_backoff(given["backoff"]).as_json()
    if given.get("tags"):
        tags = given["tags"]
        if not isinstance(tags, (list, tuple, set, frozenset)) or len(tags) > _TAG_LIMIT:
            raise InvalidOption(f"tags={tags!r} must be a list of at most {_TAG_LIMIT} names.")
        extra["tags"] = [check_name("tag", tag) for tag in tags]
    return extra


_FIELDS: tuple[tuple[str, frozenset[str], Any], ...] = (
    ("queue", frozenset({"queue"}), lambda given: check_name("queue", given["queue"])),
    ("priority", frozenset({"priority"}), lambda given: check_priority(given["priority"])),
    ("delay", frozenset({"delay"}), lambda given: micros(given["delay"], "delay")),
    ("run_at", frozenset({"run_at", "at"}), _due),
    ("unique", frozenset({"unique"}), lambda given: check_key("unique", given["unique"])),
    ("on_conflict", frozenset({"on_conflict"}), _on_conflict),
    ("max_attempts", frozenset({"max_attempts"}), lambda given: check_attempts(given["max_attempts"])),
)
