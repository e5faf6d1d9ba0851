"""Runs of the reference and of dibs in turns, and the ratio of each adjacent pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from bench.core.result import Bar, Figure, figure


@dataclass(frozen=True)
class Run:
    """One timed run: so many jobs in so many seconds, and what they cost."""

    who: str
    jobs: int
    seconds: float
    client_cpu: float | None = None
    server_cpu: float | None = None

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.seconds

    @property
    def client_us(self) -> float:
        """Processor microseconds per job in our processes."""
        return (self.client_cpu or 0.0) / self.jobs * 1e6

    @property
    def server_us(self) -> float:
        """Processor microseconds per job in the database server."""
        return (self.server_cpu or 0.0) / self.jobs * 1e6

    def as_json(self) -> dict[str, Any]:
        """For the results file."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return told | {"rate": round(self.rate), "seconds": round(self.seconds, 4)}

    def __str__(self) -> str:
        client = "" if self.client_cpu is None else f", client {self.client_us:.1f} us/job"
        server = "" if self.server_cpu is None else f", server {self.server_us:.1f} us/job"
        return f"{self.who}: {self.rate:,.0f} jobs/s{client}{server}"


Take = Callable[[], Run]


def alternate(takes: Sequence[Take], rounds: int, say: Callable[[str], None]) -> list[Run]:
    """Take turns: A B A B ... A, so that every run of the others stands between two of the first."""
    runs: list[Run] = []
    for index in range(rounds):
        for take in takes:
            runs.append(_told(take(), say))
        if index == rounds - 1:
            runs.append(_told(takes[0](), say))
    return runs


def _told(run: Run, say: Callable[[str], None]) -> Run:
    say(str(run))
    return run


def of(runs: Sequence[Run], who: str) -> list[Run]:
    """The runs of one of them."""
    return [run for run in runs if run.who == who]


def ratios(runs: Sequence[Run], subject: str, reference: str) -> list[float]:
    """The subject's rate by the reference's, for each pair of neighbours."""
    chosen = [run for run in runs if run.who in (subject, reference)]
    found = []
    for left, right in pairwise(chosen):
        if left.who != right.who:
            one, other = (left, right) if left.who == subject else (right, left)
            found.append(one.rate / other.rate)
    return found


def compared(
    runs: Sequence[Run],
    bar: Bar | None,
    client_bar: Bar | None = None,
    subject: str = "dibs",
    reference: str = "reference",
) -> list[Figure]:
    """The usual figures of a paired question."""
    mine, theirs = of(runs, subject), of(runs, reference)
    figures = [
        figure("ratio to the reference", ratios(runs, subject, reference), "", bar),
        figure(subject, [run.rate for run in mine], "jobs/s"),
        figure(reference, [run.rate for run in theirs], "jobs/s"),
        figure(f"{subject}, client CPU", [run.client_us for run in mine], "µs/job", client_bar),
        figure(f"{reference}, client CPU", [run.client_us for run in theirs], "µs/job"),
    ]
    if any(run.server_cpu is not None for run in runs):
        figures += [
            figure(f"{subject}, server CPU", [run.server_us for run in mine], "µs/job"),
            figure(f"{reference}, server CPU", [run.server_us for run in theirs], "µs/job"),
        ]
    return figures
