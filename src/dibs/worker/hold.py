"""What this worker holds: claimed jobs on their way to an outcome, and how long such jobs take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from dibs.worker.attempt import CurrentJob

_WEIGHT = 0.3
AHEAD = 0.1
"""Seconds of work held ahead of the running jobs: enough to never wait for a claim, too little to hoard."""


class Hold:
    """The jobs this process has a lease on. Removed when their outcome is stored or their lease is lost."""

    def __init__(self) -> None:
        self._held: dict[str, CurrentJob] = {}
        self._lock = threading.Lock()
        self._mean: float | None = None
        self.running = 0
        self.finished = 0
        self.busy_seconds = 0.0
        self._seen = (0, 0.0)

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

    def record(self, seconds: float) -> None:
        """A handler ran so long. Called once a job by the runners."""
        self.finished += 1
        self.busy_seconds += seconds

    def mean_seconds(self, now: float) -> float | None:
        """The moving average of how long handlers run, those that are running now included."""
        finished, busy = self.finished, self.busy_seconds
        count, spent = finished - self._seen[0], busy - self._seen[1]
        if count > 0:
            latest = spent / count
            self._mean = latest if self._mean is None else self._mean + _WEIGHT * (latest - self._mean)
            self._seen = (finished, busy)
        ages = [now - attempt._started for attempt in self.attempts() if attempt._started] if count == 0 else []
        oldest = sum(ages) / len(ages) if ages else 0.0
        return self._mean if not ages else max(self._mean or 0.0, oldest)

    def ahead(self, now: float, slots: int, most: int) -> int:
        """How many jobs may be held beyond the running ones: as many as take a tenth of a second."""
        mean = self.mean_seconds(now)
        if mean is None:
            return 0
        return min(most, int(AHEAD / max(mean, 1e-6) * slots))
