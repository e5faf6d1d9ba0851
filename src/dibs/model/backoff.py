"""How long a failed job waits before it runs again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from dibs.errors import InvalidOption
from dibs.model.duration import Duration, seconds

Shape = Literal["none", "fixed", "polynomial", "exponential"]
_SHAPES = ("none", "fixed", "polynomial", "exponential")
_STEEPEST = 64
"""Exponents are clamped here: 2**64 seconds is past any cap, and a float cannot overflow."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A retry delay as a function of the number of failures so far.

    >>> Backoff.polynomial(2, "1m").delay(3)
    datetime.timedelta(seconds=540)
    >>> Backoff.exponential(base=10, jitter=0, cap="1m").delay(9)
    datetime.timedelta(seconds=60)
    """

    shape: Shape
    unit: float = 0.0
    factor: float = 1.0
    jitter: float = 0.0
    cap: float = 86_400.0

    @classmethod
    def none(cls) -> Backoff:
        """Run again at once."""
        return cls("none")

    @classmethod
    def fixed(cls, delay: Duration, jitter: float = 0.0) -> Backoff:
        """Always wait the same time.

        >>> Backoff.fixed("30s").delay(7)
        datetime.timedelta(seconds=30)
        """
        return cls._checked("fixed", delay, 1.0, jitter, "36500d")

    @classmethod
    def polynomial(cls, power: float = 2, unit: Duration = "1m", jitter: float = 0.0, cap: Duration = "1d") -> Backoff:
        """Wait `failures ** power` units: with the defaults 1, 4, 9, 16 minutes."""
        return cls._checked("polynomial", unit, power, jitter, cap)

    @classmethod
    def exponential(cls, base: Duration = 1, factor: float = 2, jitter: float = 0.2, cap: Duration = "1d") -> Backoff:
        """Wait `base * factor ** (failures - 1)`, spread by ± `jitter`: the default of dibs."""
        return cls._checked("exponential", base, factor, jitter, cap)

    @classmethod
    def _checked(cls, shape: Shape, unit: Duration, factor: float, jitter: float, cap: Duration) -> Backoff:
        return cls(
            shape,
            seconds(unit, "backoff"),
            _between("a backoff's factor or power", factor, 100),
            _between("a backoff's jitter", jitter, 1),
            seconds(cap, "cap"),
        )

    def delay(self, failures: int, spread: float | None = None) -> timedelta:
        """The wait after `failures` failures. `spread` in [0, 1] stands for the dice of the jitter."""
        if self.shape == "none":
            return timedelta(0)
        dice = random.random() if spread is None else spread
        wait = min(self.cap, self._curve(max(1, failures)))
        wait = min(self.cap, wait * (1 + self.jitter * (2 * dice - 1)))
        if self.shape == "exponential":
            wait = max(wait, min(1.0, self.unit))
        return timedelta(seconds=wait)

    def _curve(self, failures: int) -> float:
        if self.shape == "fixed":
            return self.unit
        if self.shape == "polynomial":
            return float(self.unit * float(min(failures, 100_000)) ** min(self.factor, 20.0))
        return float(self.unit * self.factor ** min(failures - 1, _STEEPEST))

    def as_json(self) -> dict[str, Any]:
        """The form kept with a job or a queue."""
        return {
            "shape": self.shape,
            "unit": self.unit,
            "factor": self.factor,
            "jitter": self.jitter,
            "cap": self.cap,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Backoff:
        """Read what `as_json` wrote."""
        shape = value.get("shape")
        if shape not in _SHAPES:
            raise InvalidOption(f"{shape!r} is not a backoff.", f"Choose one of {', '.join(_SHAPES)}.")
        if shape == "none":
            return cls.none()
        return cls._checked(
            shape,
            value.get("unit", 1),
            value.get("factor", 2),
            value.get("jitter", 0.0),
            value.get("cap", 86_400),
        )


def check_backoff(value: Any) -> Backoff:
    """Return what may be given as a backoff."""
    if not isinstance(value, Backoff):
        raise InvalidOption(f"backoff={value!r} is not a Backoff.", 'Use Backoff.fixed("30s") or the like.')
    return Backoff.from_json(value.as_json())


def _between(what: str, value: Any, most: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise InvalidOption(f"{what} of {value!r} must be a number between 0 and {most}.")
    return float(value)


DEFAULT_BACKOFF = Backoff.exponential()
