"""Figures, the bars they must reach, and the result of one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any, Literal

Sense = Literal["at least", "at most"]


@dataclass(frozen=True)
class Bar:
    """What a figure must reach."""

    sense: Sense
    value: float

    def reached_by(self, value: float) -> bool:
        """Whether a figure is good enough."""
        return value >= self.value if self.sense == "at least" else value <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.sense == 'at least' else '≤'} {self.value:g}"


@dataclass(frozen=True)
class Figure:
    """One number with its spread over the rounds, and the bar if there is one."""

    name: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    bar: Bar | None = None

    @property
    def reached(self) -> bool | None:
        """Whether it reaches its bar; None without one."""
        return None if self.bar is None else self.bar.reached_by(self.value)

    def as_json(self) -> dict[str, Any]:
        """For the results file."""
        told: dict[str, Any] = {"name": self.name, "value": _short(self.value), "unit": self.unit}
        if self.low is not None and self.high is not None:
            told |= {"low": _short(self.low), "high": _short(self.high)}
        if self.bar is not None:
            told |= {"bar": {"sense": self.bar.sense, "value": self.bar.value}, "reached": self.reached}
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Figure:
        """Read what `as_json` wrote."""
        bar = Bar(**told["bar"]) if "bar" in told else None
        return cls(told["name"], told["value"], told["unit"], told.get("low"), told.get("high"), bar)


def figure(name: str, values: Sequence[float], unit: str = "", bar: Bar | None = None) -> Figure:
    """The median of the rounds, with the quartiles beside it (of few rounds, the lowest and the highest)."""
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) >= 4 else (min(values), 0, max(values))
    return Figure(name, median(values), unit, low, high, bar)


@dataclass
class Result:
    """The answer to one question."""

    name: str
    title: str
    figures: list[Figure]
    note: str = ""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    """When, on which commit and server, for how long, and how many cores others used meanwhile."""

    @property
    def reached(self) -> bool | None:
        """Whether every bar is reached; None if the question has no bar."""
        verdicts = [found.reached for found in self.figures if found.reached is not None]
        return all(verdicts) if verdicts else None

    def as_json(self) -> dict[str, Any]:
        """For the results file."""
        return {
            "title": self.title,
            "reached": self.reached,
            "figures": [found.as_json() for found in self.figures],
            "note": self.note,
            **self.about,
            "rounds": self.rounds,
        }

    @classmethod
    def from_json(cls, name: str, told: Mapping[str, Any]) -> Result:
        """Read what `as_json` wrote."""
        known = ("title", "reached", "figures", "note", "rounds")
        about = {key: value for key, value in told.items() if key not in known}
        figures = [Figure.from_json(found) for found in told["figures"]]
        return cls(name, told["title"], figures, told["note"], told["rounds"], about)


def _short(value: float) -> float:
    """Four significant digits or more: nothing here is known better."""
    return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")
