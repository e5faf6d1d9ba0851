"""The time of a test."""

from __future__ import annotations

import threading
import time
from datetime import datetime

from dibs.model.duration import Duration, from_instant, micros

HOUR = 3_600 * 1_000_000


class FakeClock:
    """Stands still but for a microsecond at each look, and moves when told.

    It begins an hour ahead of the real one: what the server stamps by its own clock (a COPY, a plain INSERT) is due.
    """

    def __init__(self) -> None:
        self.now = time.time_ns() // 1000 + HOUR
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            self.now += 1
            return self.now

    def advance(self, span: Duration) -> None:
        """Let time pass."""
        with self._lock:
            self.now += micros(span)

    def time(self) -> datetime:
        """Now, as a datetime."""
        return from_instant(self.now)


class FakeMonotonic:
    """Stands for the module `time` where only its monotonic clock is used."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 1_000.0
        self.step = step

    def monotonic(self) -> float:
        """The seconds so far; `step` more at every look, as if each piece of work took so long."""
        self.now += self.step
        return self.now
