"""Stores outcomes in batches: within milliseconds, from a bounded buffer."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from dibs.errors import InvalidInput
from dibs.store.dialect import Dialect
from dibs.store.settle import Settlement, settle
from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.line import Line
from dibs.worker.outcomes import REFUSED, Outcomes
from dibs.worker.service import Service
from dibs.worker.tally import Tally

_log = logging.getLogger("dibs.worker")
BATCH = 500
LINGER = 0.002
"""Seconds a small batch waits for company while more is coming."""


class Settler(Service):
    """The one writer of outcomes. What it cannot store now it keeps and tries again."""

    name = "settler"

    def __init__(
        self, line: Line, dialect: Dialect, hold: Hold, outcomes: Outcomes, more_coming: Callable[[], bool]
    ) -> None:
        super().__init__()
        self._line = line
        self._dialect = dialect
        self._hold = hold
        self._outcomes = outcomes
        self._more_coming = more_coming
        self._buffer: deque[tuple[CurrentJob, Settlement]] = deque()
        self.on_settled: Callable[[], None] = lambda: None
        self.outcomes = Tally()
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
        """Store a batch. What the database refuses must not hold up the rest; with all other trouble it waits."""
        try:
            self._settle(batch)
        except Exception as error:
            if not self._refused(error):
                raise
            self._one_by_one(batch, error)

    def _refused(self, error: Exception) -> bool:
        """Whether the outcomes themselves are at fault, so that trying again cannot help."""
        return isinstance(error, InvalidInput) or self._dialect.refuses(error.__cause__ or error)

    def _one_by_one(self, batch: list[tuple[CurrentJob, Settlement]], error: Exception) -> None:
        """Find the outcome that is refused; that its attempt failed for this reason is stored instead."""
        for attempt, settlement in batch:
            if len(batch) > 1:
                self._store([(attempt, settlement)])
                continue
            if settlement.problem is not None and settlement.problem.kind == REFUSED:
                _log.error("no outcome of %r can be stored, its lease will expire: %s", attempt, str(error))
                self._hold.remove([attempt])
            else:
                _log.error("the outcome of %r is refused and stored as a failure: %s", attempt, str(error))
                self._store([(attempt, self._outcomes.refused(attempt, error))])

    def _settle(self, batch: list[tuple[CurrentJob, Settlement]]) -> None:
        items = [item for _, item in batch]
        attempts = {
            attempt.job.row[0]: (attempt.job.row[4], attempt.job.locked_by)
            for attempt, item in batch
            if item.problem is not None
        }
        lost = self._line.call(lambda: settle(self._dialect, items, attempts))
        self._hold.remove([attempt for attempt, _ in batch])
        self.outcomes.take(stored for stored in batch if stored[1].id not in lost)
        self.lost += len(lost)
        for job_id in lost:
            _log.warning("job %s was taken from this worker before its outcome could be stored", job_id)
