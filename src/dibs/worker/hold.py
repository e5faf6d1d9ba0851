"""What this worker holds: claimed jobs on their way to an outcome."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from dibs.worker.attempt import CurrentJob
from dibs.worker.pace import Pace


class Hold:
    """The jobs this process has a lease on. Removed when their outcome is stored or their lease is lost."""

    def __init__(self) -> None:
        self._held: dict[str, CurrentJob] = {}
        self._lock = threading.Lock()
        self.pace = Pace()
        self.pace_of_processes = Pace()

    def add(self, attempts: Iterable[CurrentJob]) -> None:
        """Take attempts in."""
        with self._lock:
            self._held.update((attempt.job.row[0], attempt) for attempt in attempts)

    def remove(self, attempts: Iterable[CurrentJob]) -> None:
        """Let attempts go. A job that was put back may have been claimed again by now: that attempt stays."""
        held = self._held
        with self._lock:
            for attempt in attempts:
                job_id = attempt.job.row[0]
                if held.get(job_id) is attempt:
                    del held[job_id]

    def drop(self, attempt: CurrentJob) -> bool:
        """Let go of one attempt. Answers whether it was held: of two callers one is the first."""
        with self._lock:
            held = self._held.get(attempt.id) is attempt
            if held:
                del self._held[attempt.id]
            return held

    def holds(self, attempt: CurrentJob) -> bool:
        """Whether this attempt is still on its way to an outcome."""
        return self._held.get(attempt.id) is attempt

    def __len__(self) -> int:
        return len(self._held)

    def attempts(self) -> list[CurrentJob]:
        """All of them, as of now."""
        with self._lock:
            return list(self._held.values())

    def by_queue(self) -> Counter[str]:
        """How many are held of each queue."""
        return Counter(attempt.job.queue for attempt in self.attempts())
