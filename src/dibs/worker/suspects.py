"""Jobs that have lost a holder before: one may be what killed it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold

ALONE = 2.0
"""Seconds a suspect runs alone in its process: if it kills again, it kills only itself."""
PATIENCE = 5.0
"""Seconds a suspect waits for the others to finish; then it runs beside them, but never beside another suspect."""


class Suspects:
    """Jobs that have lost a holder before. Each is started alone, so that a killer kills no innocents."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._queue: deque[tuple[CurrentJob, float]] = deque()
        self._lone: CurrentJob | None = None

    def add(self, attempts: Iterable[CurrentJob]) -> None:
        """Take suspects in."""
        now = time.monotonic()
        self._queue.extend((attempt, now) for attempt in attempts)

    def take_back(self) -> list[CurrentJob]:
        """Remove and return those that have not been started."""
        waiting = [attempt for attempt, _ in self._queue]
        self._queue.clear()
        return waiting

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def waiting(self) -> bool:
        """Whether claims must wait: a suspect is about to start, or has just started."""
        return bool(self._queue) or self._lone is not None

    def next(self) -> CurrentJob | None:
        """The suspect to start now, if it is time."""
        now = time.monotonic()
        if self._lone is not None:
            started = self._lone._started
            if not self._lone._settled and not (started and now - started > ALONE):
                return None
            if self._lone._settled and self._lone in self._hold.attempts():
                return None
            self._lone = None
        while self._queue:
            attempt, since = self._queue[0]
            others = len(self._hold) - len(self._queue)
            if attempt._settled:
                self._queue.popleft()
            elif others > 0 and now - since < PATIENCE:
                return None
            else:
                self._queue.popleft()
                self._lone = attempt
                return attempt
        return None
