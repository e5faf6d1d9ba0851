"""What every runner of handlers is: a line of jobs that wait for their start, and the handlers that run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from dibs.worker.attempt import Abort, CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes, Settlement

Finish = Callable[[CurrentJob, Settlement], None]


class Runner(ABC):
    """Where handlers run: the loop, threads, or processes. Safe to use from any thread."""

    def __init__(self, slots: int, hold: Hold) -> None:
        self._slots = slots
        self._hold = hold
        self._pending: deque[CurrentJob] = deque()
        self._running: set[CurrentJob] = set()
        self.moved_at = 0.0
        """When a job was last started or handed over."""

    @property
    def waiting(self) -> int:
        """Jobs that have not been started."""
        return len(self._pending)

    @property
    def stuck(self) -> int:
        """Handlers that go on although their jobs have been given up."""
        return sum(1 for attempt in tuple(self._running) if not self._hold.holds(attempt))

    def submit(self, attempts: list[CurrentJob]) -> None:
        """Hand over a batch."""
        self.moved_at = time.monotonic()
        self._pending.extend(attempts)
        self._call()

    def take_back(self) -> list[CurrentJob]:
        """Remove and return what has not been started."""
        taken = []
        while True:
            try:
                taken.append(self._pending.popleft())
            except IndexError:
                return taken

    @abstractmethod
    def _call(self) -> None:
        """Have somebody look at the line."""

    @abstractmethod
    def abort(self, attempt: CurrentJob) -> None:
        """Stop a running handler as far as that is possible. `attempt._abort` says why."""

    @abstractmethod
    def stop(self, timeout: float) -> bool:
        """End. Answers whether everything ended in time."""


def given_up(attempt: CurrentJob, now: float, outcomes: Outcomes, finish: Finish) -> bool:
    """Whether a job must not be started any more: its lease is over, or it has an outcome already."""
    if now > attempt._fence:
        finish(attempt, outcomes.returned_unrun(attempt))
    return attempt._settled


def aborted(outcomes: Outcomes, attempt: CurrentJob, error: BaseException) -> Settlement | None:
    """What becomes of a job whose handler was stopped. None if it is not this worker's to decide any more."""
    reason: Abort | None = attempt._abort
    if reason == "lost":
        return None
    if reason == "timeout":
        return outcomes.timed_out(attempt)
    if reason == "shutdown":
        return outcomes.cut_off(attempt)
    return outcomes.raised(attempt, error)
