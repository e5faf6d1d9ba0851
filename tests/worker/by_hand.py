"""A worker whose services run only when the test says so. Its handlers run where they always run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dibs import Dibs
from dibs.worker import Worker
from dibs.worker.attempt import CurrentJob
from tests.support.waiting import PATIENCE, wait_until


class ByHand:
    """Drives one worker: `fetch` claims and starts, `settle` stores, `beat` keeps leases, `watch` gives them up."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        worker._prepare()

    def fetch(self) -> list[CurrentJob]:
        """One round of the fetcher, as if somebody had rung; answers what the worker holds."""
        self.worker.fetcher.ring()
        self.worker.fetcher.tick()
        return self.held

    @property
    def held(self) -> list[CurrentJob]:
        """The attempts this worker holds."""
        return self.worker.hold.attempts()

    def watch(self) -> None:
        """One round of the guard, who watches limits and leases."""
        self.worker.guard.tick()

    def beat(self) -> None:
        """A beat for everything that is held."""
        for attempt in self.held:
            attempt._beat_at = 0.0
        self.worker.keeper.tick()

    def finished(self, count: int = 1) -> None:
        """Wait until so many outcomes wait to be stored."""
        wait_until(lambda: self.worker.settler.waiting >= count, f"{count} outcomes")

    def settle(self, count: int = 1) -> None:
        """Wait for outcomes and store them."""
        self.finished(count)
        while self.worker.settler.waiting:
            self.worker.settler.tick()

    def run(self, count: int = 1) -> None:
        """Claim, and store the outcomes of so many jobs."""
        self.fetch()
        self.settle(count)

    def run_all(self) -> int:
        """Run whatever is due until nothing is; answers how many."""
        done = 0
        while self.fetch():
            held = len(self.held)
            self.settle(held)
            done += held
        return done

    def close(self) -> None:
        """Stop the threads of the runners and hang up."""
        for runner in self.worker._runners.values():
            runner.take_back()
            runner.stop(5.0)
        for service in self.worker.services:
            service.closed()


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """`wait_until` for a handler on the loop: it can be cancelled, and lets others go on."""
    loop = asyncio.get_running_loop()
    deadline, never = loop.time() + seconds, loop.create_future()
    while not condition():
        assert loop.time() < deadline, "waited in vain"
        await asyncio.wait([never], timeout=0.002)


@contextmanager
def by_hand(jobs: Dibs, **options: Any) -> Iterator[ByHand]:
    """A worker of these jobs, driven by the test."""
    hand = ByHand(jobs.worker(**options))
    try:
        yield hand
    finally:
        hand.close()
