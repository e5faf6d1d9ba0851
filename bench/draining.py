"""Drains: jobs are stored, statistics made fresh, then workers empty the table against the clock.

The clock runs from the first claim until the database says that all are finished. Both sides are separate
processes, started and connected beforehand.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import Any

from bench.app import QUEUE, Application
from bench.core.children import Child, children
from bench.core.pairing import Run
from bench.core.stage import Stage
from bench.grounds.database import Database

LOOK_SECONDS = 0.005
DRAIN_SECONDS = 120.0
LOAD = 10_000
TEXT = "x" * 88


@dataclass(frozen=True)
class Drain:
    """One drain to be timed."""

    jobs: int
    """How many must be finished for the clock to stop."""
    processes: int = 1
    stored: int = 0
    """How many wait at the beginning, if more than that."""
    task: str = "noop"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def until_empty(self) -> bool:
        """Whether everything that waits is to be finished."""
        return not self.stored or self.stored == self.jobs


@dataclass(frozen=True)
class Drained:
    """A drain that is over: the figures, and how many were finished when."""

    run: Run
    began: float
    curve: list[tuple[float, int]]

    def rate_between(self, first: int, last: int) -> float:
        """Jobs per second from the `first`-th finished job to the `last`-th."""
        return (last - first) / (self._when(last) - self._when(first))

    def first(self, count: int) -> Run:
        """The same run, timed until so many were finished."""
        return replace(self.run, jobs=count, seconds=self._when(count) - self.began)

    def _when(self, count: int) -> float:
        return next(at for at, done in self.curve if done >= count)


def store(database: Database, app: Application, drain: Drain) -> str:
    """Enqueue in bulk; answers the id of the last job that has to be finished."""
    database.clear()
    task = getattr(app, drain.task)
    for start in range(0, drain.jobs, LOAD):
        size = min(LOAD, drain.jobs - start)
        handles = app.jobs.enqueue_many([task.job(TEXT) for _ in range(size)])
    return str(handles[-1].id)


def ours(stage: Stage, database: Database, drain: Drain, last: str, who: str = "dibs") -> Drained:
    """Let dibs' workers run what is stored."""
    options = json.dumps({**drain.options, "until_empty": drain.until_empty})
    with children(drain.processes, "bench.app", [database.url, options], stage.log) as workers:
        server = database.server.cpu_seconds()
        for worker in workers:
            worker.go()
        ended = _await_end(database, last, drain.until_empty)
        server = database.server.cpu_seconds() - server
        cpu = _stop(workers, drain.until_empty)
    began = database.first_claim()
    return Drained(Run(who, drain.jobs, ended - began, cpu, server), began, database.curve())


def theirs(stage: Stage, database: Database, drain: Drain, who: str = "reference") -> Drained:
    """Let the reference run what is stored for it."""
    module, arguments = database.reference.module, ["drain", database.url, str(drain.jobs)]
    with children(drain.processes, module, arguments, stage.log) as loops:
        server = database.server.cpu_seconds()
        for loop in loops:
            loop.go()
        answers = [loop.hear(DRAIN_SECONDS) for loop in loops]
        server = database.server.cpu_seconds() - server
    began = min(answer["began"] for answer in answers)
    seconds = max(answer["ended"] for answer in answers) - began
    jobs = sum(answer["jobs"] for answer in answers)
    cpu = sum(answer["cpu"] for answer in answers)
    curve = [(at, done) for at, done in answers[0]["curve"]]
    return Drained(Run(who, jobs, seconds, cpu, server), began, curve)


def fill_reference(database: Database, jobs: int, tuned: bool = False) -> None:
    """A fresh table with so many jobs for the reference."""
    database.reference.create(tuned)
    for start in range(0, jobs, LOAD):
        database.reference.bulk(database.reference.table, min(LOAD, jobs - start))
    database.settle_down(database.reference.table)


def _await_end(database: Database, last: str, empty: bool) -> float:
    """Look for the last job in claim order, by its key: that costs the same whatever is dead around it."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while database.lives(last) or (empty and not database.is_empty()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{database.count(database.job)} jobs are left after {DRAIN_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    return time.time()


def _stop(workers: list[Child], ends_itself: bool) -> float:
    """Processor time of the workers, from "go" until they have ended in order."""
    if not ends_itself:
        for worker in workers:
            worker.ask_to_stop()
    return sum(float(worker.hear(60.0)["cpu"]) for worker in workers)


def check_all_finished(database: Database, jobs: int) -> None:
    """Every job is in the history, once, completed: a fast queue that loses some would win every bench."""
    finished = database.succeeded()
    if finished != jobs or not database.is_empty():
        raise AssertionError(f"{finished} of {jobs} jobs are completed at the first attempt")


__all__ = ["QUEUE", "Drain", "Drained", "check_all_finished", "fill_reference", "ours", "store", "theirs"]
