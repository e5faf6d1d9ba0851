"""What every runner of handlers is: a line of jobs that wait for their start, and the handlers that run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable

from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes, Settlement

Finish = Callable[[CurrentJob, Settlement], None]


class Slots:
    """How many handlers may run at once, whatever kind they are. Safe to use from any thread."""

    def __init__(self, number: int) -> None:
        self._free = [None] * number  # its pop and append are atomic
        self._runners: tuple[Runner, ...] = ()

    def share(self, runners: Iterable[Runner]) -> None:
        """Let several runners have these slots together, instead of each its own."""
        self._runners = tuple(runners)
        for runner in self._runners:
            runner._shared = self

    @property
    def free(self) -> bool:
        """Whether one is free now."""
        return bool(self._free)

    def take(self) -> bool:
        """Take one. Answers whether there was one."""
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def give(self, giver: Runner) -> None:
        """Give one back. The giver looks at its own line itself; who else waits for a slot is called."""
        self._free.append(None)
        for runner in self._runners:
            if runner._pending and runner is not giver:
                runner._call()


class Runner(ABC):
    """Where handlers run: the loop, threads, or processes. Safe to use from any thread."""

    def __init__(self, slots: int, hold: Hold, outcomes: Outcomes, finish: Finish) -> None:
        self._slots = slots
        self._outcomes = outcomes
        self._finish = finish
        self._shared = Slots(slots)
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

    def _next(self) -> CurrentJob | None:
        """The next job of the line, with a slot to run it in; None if there is no job or no slot."""
        if not self._pending or not self._shared.take():
            return None
        try:
            return self._pending.popleft()
        except IndexError:
            self._shared.give(self)
            return None

    def _given_up(self, attempt: CurrentJob, now: float) -> bool:
        """Whether a job must not be started any more: its lease is over, or it has an outcome already."""
        if now > attempt._fence:
            self._finish(attempt, self._outcomes.returned_unrun(attempt))
        return attempt._settled

    def _end(self, attempt: CurrentJob, settlement: Settlement | None) -> None:
        """A handler has ended. One that was asked to stop has left its work half done."""
        if attempt._abort == "timeout":
            settlement = self._outcomes.timed_out(attempt)
        elif attempt._abort == "shutdown":
            settlement = self._outcomes.cut_off(attempt)
        elif attempt._abort == "lost":  # not this worker's to decide any more
            return
        if settlement is not None:
            self._finish(attempt, settlement)

    @abstractmethod
    def _call(self) -> None:
        """Have somebody look at the line."""

    @abstractmethod
    def abort(self, attempt: CurrentJob) -> None:
        """Stop a running handler as far as that is possible. `attempt._abort` says why."""

    @abstractmethod
    def stop(self, timeout: float) -> bool:
        """End. Answers whether everything ended in time."""
