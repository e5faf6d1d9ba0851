"""Keeps leases alive, in a thread no handler and no event loop can block."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import groupby

from dibs.model.duration import SECOND
from dibs.store.dialect import Dialect
from dibs.store.settle import beat
from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.line import Line
from dibs.worker.service import Service

TICK = 0.1
SHOWN_AFTER = 0.25
"""A handler that runs longer than this is shown as running: its first beat comes at once."""
MOST = 1_000


class Keeper(Service):
    """Beats for every held job at a third of its lease. The guard gives up what cannot be kept."""

    name = "keeper"
    longest_pause = 0.5

    def __init__(self, line: Line, dialect: Dialect, hold: Hold, lose: Callable[[CurrentJob], None]) -> None:
        super().__init__()
        self._line = line
        self._dialect = dialect
        self._hold = hold
        self._lose = lose

    def tick(self) -> float:
        """Beat for those whose turn it is: also for those whose outcome waits to be stored."""
        now = time.monotonic()
        due = [attempt for attempt in self._hold.attempts() if self._is_due(attempt, now)]
        due.sort(key=_lease)
        for lease, group in groupby(due, key=_lease):
            attempts = list(group)
            for start in range(0, len(attempts), MOST):
                self._beat(attempts[start : start + MOST], lease)
        return TICK

    def closed(self) -> None:
        """Hang up."""
        self._line.close()

    def _is_due(self, attempt: CurrentJob, now: float) -> bool:
        if now - attempt._beat_at > attempt._lease / 3:
            return True
        shown = attempt._settled or attempt._beat_at > attempt._started
        return bool(attempt._started) and not shown and now - attempt._started > SHOWN_AFTER

    def _beat(self, attempts: list[CurrentJob], lease: float) -> None:
        sent = time.monotonic()
        held = [(attempt.id, attempt.job.token, attempt._age()) for attempt in attempts]
        lost = self._line.call(lambda: beat(self._dialect, held, round(lease * SECOND)))
        for attempt in attempts:
            if attempt.id not in lost:
                attempt._beat_at = sent
                attempt._fence = sent + lease
            elif not attempt._settled:
                self._lose(attempt)


def _lease(attempt: CurrentJob) -> float:
    return attempt._lease
