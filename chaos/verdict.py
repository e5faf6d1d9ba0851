"""What the checker found: violations with the timelines of the jobs concerned, and counts that show what was tried."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

TIMELINES = 10
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant. `job` is empty where it is about the run as a whole."""

    invariant: str
    text: str
    job: str = ""


@dataclass(slots=True)
class Verdict:
    """The result of one run."""

    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    intended: dict[str, int] = field(default_factory=dict)
    timelines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    journals: str = ""

    @property
    def vacuous(self) -> list[str]:
        """What the scenario meant to try and did not."""
        return [
            f"{name}: {self.counts.get(name, 0)} instead of at least {least}"
            for name, least in self.intended.items()
            if self.counts.get(name, 0) < least
        ]

    @property
    def passed(self) -> bool:
        """Whether every invariant held, and that was worth something."""
        return not self.violations and not self.vacuous

    def as_json(self) -> str:
        """All of it."""
        return json.dumps(
            {
                **self.about,
                "passed": self.passed,
                "violations": [
                    {"invariant": found.invariant, "job": found.job, "text": found.text} for found in self.violations
                ],
                "vacuous": self.vacuous,
                "counts": self.counts,
                "intended": self.intended,
                "timelines": self.timelines,
            },
            indent=2,
        )

    def __str__(self) -> str:
        lines = [" ".join(f"{name}={value}" for name, value in self.about.items())]
        lines.append("  " + ", ".join(f"{name} {number}" for name, number in self.counts.items() if number))
        lines += [f"  VACUOUS {text}" for text in self.vacuous]
        for invariant, number in sorted(Counter(found.invariant for found in self.violations).items()):
            shown = [found for found in self.violations if found.invariant == invariant][:SHOWN]
            lines += [f"  BROKEN {invariant} {found.job} {found.text}" for found in shown]
            lines += [f"  and {number - len(shown)} more of {invariant}"] if number > len(shown) else []
        lines.append("  held" if self.passed else f"  FAILED; its journals are in {self.journals}")
        return "\n".join(lines)
