"""How long handlers take, as a moving average, and how many jobs may therefore be held ahead of those that run."""

from __future__ import annotations

from collections.abc import Iterable

from dibs.worker.attempt import CurrentJob

_WEIGHT = 0.3
AHEAD = 0.1
"""Seconds of work held ahead of the running jobs: enough to never wait for a claim, too little to hoard."""
MOST = 2_000


class Pace:
    """Fed by the runners, asked by the fetcher."""

    def __init__(self) -> None:
        self._finished = 0
        self._busy = 0.0
        self._seen = (0, 0.0)
        self._mean: float | None = None

    def record(self, seconds: float) -> None:
        """A handler ran so long. Called once a job."""
        self._finished += 1
        self._busy += seconds

    def ahead(self, now: float, slots: int, held: Iterable[CurrentJob]) -> int:
        """How many jobs may be held beyond the running ones: as many as take a tenth of a second."""
        mean = self._mean_seconds(now, held)
        # While nothing has ended yet, that the first jobs are young does not make them short.
        return 0 if mean is None else min(MOST, int(AHEAD / max(mean, 1e-6) * slots))

    def _mean_seconds(self, now: float, held: Iterable[CurrentJob]) -> float | None:
        """The average of what has ended; when nothing has ended lately, at least the age of what runs."""
        finished, busy = self._finished, self._busy
        count, spent = finished - self._seen[0], busy - self._seen[1]
        if count > 0:
            latest = spent / count
            self._mean = latest if self._mean is None else self._mean + _WEIGHT * (latest - self._mean)
            self._seen = (finished, busy)
        if count > 0 or self._mean is None:
            return self._mean
        ages = [now - attempt._started for attempt in held if attempt._started and not attempt._settled]
        return max(self._mean, sum(ages) / len(ages)) if ages else self._mean
