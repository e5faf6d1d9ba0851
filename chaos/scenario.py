"""A run from its beginning to its verdict; the scenarios differ in what is done in between."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from chaos import history, sabotage, tables
from chaos.application import QUEUE
from chaos.checker import check, explain
from chaos.fleet import Fleet, Nemesis, RunFailed
from chaos.history import History
from chaos.places import Place
from chaos.tables import Tables
from chaos.verdict import Verdict, Violation
from dibs import Backoff, Dibs

DRAIN_SECONDS = 90.0
BROKEN_DRAIN_SECONDS = 8.0
"""With a bug in the workers: then jobs may go round for ever, and there is something to see long before."""
DEAD_SECONDS = 45.0
GRACE = 5.0
ENDLESS = 1_000_000
OLD = 20
"""Jobs that have waited for days when a run begins."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What may be chosen for a run. `patience` multiplies the time limits: for a machine that does other things too."""

    seed: int = 1
    scale: float = 1.0
    sabotage: str | None = None
    patience: float = 1.0

    @property
    def drain_seconds(self) -> float:
        """How long jobs are given to end."""
        return BROKEN_DRAIN_SECONDS if self.sabotage else DRAIN_SECONDS * self.patience

    def times(self, number: float) -> int:
        """A dose, at this scale."""
        return max(1, round(number * self.scale))


@dataclass(slots=True)
class Run:
    """What a scenario has at hand."""

    plan: Plan
    place: Place
    url: str
    folder: Path
    jobs: Dibs
    fleet: Fleet
    nemesis: Nemesis
    intended: dict[str, int] = field(default_factory=dict)
    producers: int = 0

    def workers(self, count: int, **options: Any) -> None:
        """Start dibs' workers."""
        self.start("worker", count, grace=GRACE, **options)

    def start(self, role: str, count: int, **options: Any) -> None:
        """Start processes, with the bug of this run in them."""
        self.fleet.start(role, count, sabotage=self.plan.sabotage, **options)

    def produce(self, rate: float, tasks: Iterable[str], ms: tuple[int, int] = (0, 50), count: int = ENDLESS) -> None:
        """Start a producer of so many jobs a second, until it is stopped or has made `count`."""
        first = ENDLESS * self.producers
        self.producers += 1
        seed = f"{self.plan.seed}-{self.producers}"
        self.start("producer", 1, seed=seed, first=first, rate=rate, tasks=list(tasks), ms=ms, most=count)

    def have_old_jobs(self) -> None:
        """Jobs that have waited for longer than finished ones are kept: they are kept from their end on."""
        journal = self.nemesis.journal
        numbers = range(-OLD, 0)
        for n in numbers:
            journal.write("enqueue.invoke", n=n, task="nap", key=None)
        for n, handle in zip(numbers, self.jobs.enqueue_many(self._naps(numbers)), strict=True):
            journal.write("enqueue.ok", n=n, job=handle.id, new=handle.created)
        tables.make_old(self.url)

    def _naps(self, numbers: Iterable[int]) -> list[Any]:
        return [self.jobs.job("nap", {"n": n, "ms": 10}, queue=QUEUE) for n in numbers]

    def wait_for_dead(self, number: int) -> None:
        """Wait until so many jobs are dead, under load; gives up after a while, for the checker to tell which are not.

        Workers that end by themselves are started again.
        """
        end = time.monotonic() + DEAD_SECONDS * self.plan.patience
        while self._dead() < number and time.monotonic() < end:
            self.fleet.revive()
            time.sleep(0.05)
        if self._dead() < number:
            self.nemesis.journal.write("starved", live=tables.shown(self.url))

    def _dead(self) -> int:
        return sum(jobs for _, outcome, jobs in self.jobs.stats("1h").finished if outcome == "dead")

    def drain(self) -> None:
        """Stop the producers and wait until every job has ended; gives up after a while: the checker tells which."""
        self.fleet.stop("producer")
        end = time.monotonic() + self.plan.drain_seconds
        while self.jobs.stats("1s").live and time.monotonic() < end:
            self.fleet.revive()
            time.sleep(0.05)


class Scenario:
    """One kind of fault. Subclasses say what they intend and do."""

    name = ""
    what = ""

    def hurt(self, run: Run) -> None:
        """Start processes and hurt them; what it means to try goes to `run.intended`."""
        raise NotImplementedError

    def judge(self, _history: History, _tables: Tables, _plan: Plan) -> Iterable[Violation]:
        """What this scenario asks beyond the invariants."""
        return ()

    def figures(self, _history: History, _tables: Tables) -> dict[str, int]:
        """What this scenario measures."""
        return {}


def carry_out(scenario: Scenario, place: Place, plan: Plan, folder: Path) -> Verdict:
    """Run a scenario and check what came of it. Its journals stay in a folder below `folder` if the verdict is bad."""
    started = time.monotonic()
    journals = Path(mkdtemp(prefix=f"{scenario.name}-{place.name}-", dir=folder))
    name = f"chaos_{scenario.name.lower()}_{random.getrandbits(40):x}"
    try:
        verdict = _run(scenario, place, plan, place.make(name), journals)
    finally:
        place.remove(name)
    verdict.about = {
        "scenario": scenario.name,
        "database": place.name,
        "seed": plan.seed,
        "scale": plan.scale,
        **({"sabotage": plan.sabotage} if plan.sabotage else {}),
        "seconds": round(time.monotonic() - started, 1),
    }
    if verdict.passed:
        shutil.rmtree(journals)
    else:
        verdict.journals = str(journals)
    return verdict


def _run(scenario: Scenario, place: Place, plan: Plan, url: str, journals: Path) -> Verdict:
    jobs = Dibs(place.ways(url)[0])
    try:
        jobs.migrate()
        jobs.configure(QUEUE, backoff=Backoff.fixed(0.1), max_attempts=100, max_crashes=100)
        if plan.sabotage:
            sabotage.apply(plan.sabotage, jobs)
        with Fleet(place.ways(url), journals) as fleet:
            run = Run(plan, place, url, journals, jobs, fleet, Nemesis(journals, plan.seed))
            run.have_old_jobs()
            scenario.hurt(run)
            run.drain()
            fleet.stop("worker", "loop")
        jobs.prune()
        return _judge(scenario, run)
    finally:
        jobs.close()


def _judge(scenario: Scenario, run: Run) -> Verdict:
    seen, stored = history.read(run.folder), tables.read(run.url)
    if len(seen.of("enqueue.invoke")) <= OLD:
        raise RunFailed("the producers enqueued nothing")
    verdict = check(seen, stored, run.intended)
    verdict.violations += scenario.judge(seen, stored, run.plan)
    verdict.violations += _recount(run, stored)
    verdict.counts |= scenario.figures(seen, stored)
    explain(verdict, seen, stored)
    return verdict


def _recount(run: Run, stored: Tables) -> Iterable[Violation]:
    """I10: what dibs shows equals a recount, and a file is whole."""
    shown = run.jobs.stats("1h")
    finished = sum(number for *_, number in shown.finished)
    if not shown.capped and finished != len(stored.final):
        yield Violation("I10", f"stats show {finished} finished jobs, there are {len(stored.final)}")
    live = sum(row.jobs for row in shown.live)
    if not shown.capped and live != len(stored.live):
        yield Violation("I10", f"stats show {live} live jobs, there are {len(stored.live)}")
    broken = tables.broken_pages(run.url)
    if broken:
        yield Violation("I1", f"the file is not whole: {broken}")
