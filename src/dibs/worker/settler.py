"""Stores outcomes in batches: within milliseconds, from a bounded buffer."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from dibs.errors import DatabaseUnreachable, DibsError
from dibs.store.dialect import Dialect
from dibs.store.settle import Settlement, settle
from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.line import Line
from dibs.worker.service import Service

_log = logging.getLogger("dibs.worker")
BATCH = 500
LINGER = 0.002
"""Seconds a small batch waits for company while more is coming."""


class Settler(Service):
    """The one writer of outcomes. What it cannot store now it keeps and tries again."""

    name = "settler"

    def __init__(self, line: Line, dialect: Dialect, hold: Hold, more_coming: Callable[[], bool]) -> None:
        super().__init__()
        self._line = line
        self._dialect = dialect
        self._hold = hold
        self._more_coming = more_coming
        self._buffer: deque[tuple[CurrentJob, Settlement]] = deque()
        self.on_settled: Callable[[], None] = lambda: None
        self.settled = 0
        self.lost = 0

    def add(self, attempt: CurrentJob, settlement: Settlement) -> None:
        """Hand over an outcome. Called from the runners' threads, once an attempt."""
        if attempt._settled:
            return
        attempt._settled = True
        self._buffer.append((attempt, settlement))
        if not self._wake.is_set():
            self._wake.set()

    @property
    def waiting(self) -> int:
        """Outcomes not stored yet."""
        return len(self._buffer)

    def tick(self) -> float:
        """Store what has been collected."""
        if not self._buffer:
            return 60.0
        if len(self._buffer) < BATCH and self._more_coming() and not self.stopping:
            time.sleep(LINGER)
        batch = [self._buffer[index] for index in range(min(BATCH, len(self._buffer)))]
        self._store(batch)
        for _ in batch:
            self._buffer.popleft()
        self.on_settled()
        return 0.0 if self._buffer else 60.0

    def drain(self, deadline: float) -> bool:
        """Store everything before a deadline (of the monotonic clock). Answers whether it was."""
        while self._buffer and time.monotonic() < deadline:
            self.wake()
            time.sleep(0.002)
        return not self._buffer

    def closed(self) -> None:
        """Hang up."""
        self._line.close()

    def _store(self, batch: list[tuple[CurrentJob, Settlement]]) -> None:
        try:
            self._settle(batch)
        except DatabaseUnreachable:
            raise
        except DibsError as error:
            self._one_by_one(batch, error)
        except Exception as error:  # noqa: BLE001 - one outcome the database refuses must not hold up the others
            self._one_by_one(batch, error)

    def _one_by_one(self, batch: list[tuple[CurrentJob, Settlement]], error: Exception) -> None:
        """Find the outcome the database refuses; its job's lease expires, and the reaper counts it as a crash."""
        if len(batch) == 1:
            _log.error("the outcome of %r cannot be stored: %s", batch[0][0], error)
            self._hold.remove([batch[0][0]])
            return
        for item in batch:
            self._store([item])

    def _settle(self, batch: list[tuple[CurrentJob, Settlement]]) -> None:
        items = [item for _, item in batch]
        attempts = {
            attempt.job.row[0]: (attempt.job.row[4], attempt.job.locked_by)
            for attempt, item in batch
            if item.problem is not None
        }
        lost = self._line.call(lambda: settle(self._dialect, items, attempts))
        self._hold.remove([attempt for attempt, _ in batch])
        self.settled += len(items) - len(lost)
        self.lost += len(lost)
        for job_id in lost:
            _log.warning("job %s was taken from this worker before its outcome could be stored", job_id)
