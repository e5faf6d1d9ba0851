"""Taking expired leases back, a bounded stretch of each lane at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable

from dibs.model.duration import Micros
from dibs.store import reap as operations
from dibs.store.claim import START
from dibs.store.claimer import Call
from dibs.store.dialect import Dialect

SHARE = 20
"""Walking takes at most one twentieth of the time."""


class Reaper:
    """Walks the lanes from the front and releases what its holder has lost. Remembers how far it came."""

    def __init__(self, call: Call, dialect: Dialect) -> None:
        self._call = call
        self._dialect = dialect
        self._reached: dict[tuple[str, int], tuple[Micros, str]] = {}
        self.pause = 0.0

    def sweep(self, lanes: Iterable[tuple[str, int]], limit: int = 1_000) -> int:
        """Walk one stretch of each lane, whole lanes if they are short. Answers how many leases were taken back."""
        started = time.monotonic()
        taken = 0
        for queue, priority in lanes:
            taken += self._sweep_lane(queue, priority, limit - taken)
            if taken >= limit:
                break
        self.pause = SHARE * (time.monotonic() - started)
        return taken

    def _sweep_lane(self, queue: str, priority: int, limit: int) -> int:
        start = self._reached.get((queue, priority), START)
        walked = self._call(lambda: operations.walk(queue, priority, start))
        self._reached[queue, priority] = START if walked.ended else walked.at
        if not walked.expired:
            return 0
        released, buried = self._call(lambda: operations.take_back(self._dialect, walked.expired[:limit]))
        return int(released + buried)
