"""What happens in `dibs demo`: two workers, jobs of several kinds, a failure, a kill -9, and a burst."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dibs.cli import demo_tasks as shop
from dibs.cli.problems import problem
from dibs.door.dibs import Dibs
from dibs.door.handle import Handle
from dibs.errors import DibsError
from dibs.messages import say
from dibs.model.status import Status

BURST = 40_000
LEASE = "2s"
"""Short, so that what the killed worker held comes back while one watches; the default is a minute."""
DEADLINE = 50.0


@dataclass(slots=True)
class Hero:
    """A job the story follows from state to state."""

    name: str
    handle: Handle[Any]
    seen: list[str] = field(default_factory=list)


class Story:
    """Runs the demo and tells what it sees. `tell` is called with each line as it happens."""

    def __init__(self, jobs: Dibs, url: str, tell: Callable[[str], None]) -> None:
        self.jobs = jobs
        self._url = url
        self._tell = tell
        self._started = time.monotonic()
        self._workers: list[subprocess.Popen[bytes]] = []
        self.heroes: list[Hero] = []
        self.enqueued = 0
        self.killed: int | None = None
        self.burst_rate = 0.0

    def scenes(self) -> Iterator[None]:
        """One scene after another; each yield is a moment to look."""
        self._open()
        yield from self._until(lambda: self._status("import_feed") is Status.RUNNING)
        yield from self._pause(0.8)
        self._kill()
        yield from self._until(self._heroes_done)
        yield from self._burst()
        yield from self._until(self._empty)

    def close(self) -> None:
        """Stop the workers."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.terminate()
        for worker in self._workers:
            worker.wait(10)

    @property
    def elapsed(self) -> float:
        """Seconds since the curtain rose."""
        return time.monotonic() - self._started

    def finished(self) -> dict[str, int]:
        """Jobs that have ended, by outcome."""
        totals: dict[str, int] = {}
        for _, outcome, number in self.jobs.stats().finished:
            totals[outcome] = totals.get(outcome, 0) + number
        return totals

    def _open(self) -> None:
        for name in ("anna", "ben"):
            self._workers.append(self._start(name))
            self._tell(say("demo.worker_started", name=name, pid=self._workers[-1].pid))
        crowd = [shop.send_receipt.job(n) for n in range(120)]
        crowd += [shop.resize_image.job(n) for n in range(60)]
        crowd += [shop.monthly_report.job(n) for n in range(1, 7)]
        self.jobs.enqueue_many(crowd)
        self._follow("charge_card", shop.charge_card.enqueue(4711))
        self._follow("import_feed", shop.import_feed.enqueue(25_000))
        self._follow("send_receipt", shop.send_receipt.using(delay="3s").enqueue(1))
        self.enqueued = len(crowd) + len(self.heroes)
        self._tell(say("demo.enqueued", number=self.enqueued))

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        code = (
            "from dibs.cli.demo_tasks import jobs; import logging; logging.disable(logging.CRITICAL); "
            f"jobs.worker(name={name!r}, concurrency=8, lease={LEASE!r}, grace='5s').run()"
        )
        environment = {**os.environ, "DIBS_DEMO_URL": self._url}
        return subprocess.Popen([sys.executable, "-c", code], env=environment)

    def _follow(self, name: str, handle: Handle[Any]) -> None:
        self.heroes.append(Hero(name, handle))

    def _status(self, name: str) -> Status:
        return next(hero for hero in self.heroes if hero.name == name).handle.status()

    def _kill(self) -> None:
        """kill -9 the worker that runs the import."""
        hero = next(hero for hero in self.heroes if hero.name == "import_feed")
        holder = self.jobs.get(hero.handle.id).worker_id or ""
        self.killed = int(holder.split(":")[1])
        os.kill(self.killed, signal.SIGKILL)
        self._tell(say("demo.killed", name=holder.split(":")[0], pid=self.killed))

    def _heroes_done(self) -> bool:
        return all(hero.handle.status().final for hero in self.heroes)

    def _empty(self) -> bool:
        return self._at_most(0)

    def _at_most(self, jobs: int) -> bool:
        return self._left() <= jobs

    def _left(self) -> int:
        return sum(lane.jobs for lane in self.jobs.stats().live)

    def _burst(self) -> Iterator[None]:
        started = time.monotonic()
        self.jobs.enqueue_many([shop.count.job(n) for n in range(BURST)])
        self.enqueued += BURST
        self._tell(say("demo.burst", number=BURST))
        for left in (BURST * 3 // 4, BURST // 2, BURST // 4):
            yield from self._until(partial(self._at_most, left))
            self._tell(say("demo.burst_left", left=self._left()))
        yield from self._until(self._empty)
        self.burst_rate = BURST / (time.monotonic() - started)
        self._tell(say("demo.burst_done", rate=f"{self.burst_rate:,.0f}"))

    def _until(self, done: Callable[[], bool]) -> Iterator[None]:
        while not done():
            if self.elapsed > DEADLINE:
                raise problem(DibsError, "demo-too-slow", seconds=round(DEADLINE))
            self._watch()
            yield
        self._watch()

    def _pause(self, seconds: float) -> Iterator[None]:
        end = time.monotonic() + seconds
        return self._until(lambda: time.monotonic() >= end)

    def _watch(self) -> None:
        """Tell when a hero's state changes."""
        for hero in self.heroes:
            record = self.jobs.get(hero.handle.id)
            line = f"{record.status}/{record.attempts}"
            if not hero.seen or hero.seen[-1] != line:
                hero.seen.append(line)
                if record.status not in (Status.READY, Status.CLAIMED):
                    self._tell(say(f"demo.hero_{record.status}", name=hero.name, attempt=record.attempts))
