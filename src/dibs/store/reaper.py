"""Taking expired leases back, a bounded time of walking at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable

from dibs.model.duration import Micros
from dibs.model.lane import Cost
from dibs.store import reap as operations
from dibs.store.claim import START
from dibs.store.claimer import Call
from dibs.store.dialect import Dialect
from dibs.store.reap import Walked

BUDGET = 0.05
"""Seconds of walking in one sweep; at least one stretch of each lane is walked."""
SHARE = 20
"""Walking takes at most one twentieth of the time."""

Key = tuple[str, int]
Place = tuple[Micros, str]


class Reaper:
    """Walks the lanes and releases what its holder has lost. Remembers how far it came.

    Jobs are claimed from the front of their lane on, so expired leases are near it: every sweep walks from the
    front until a whole stretch holds nothing that was ever claimed. A claim of certain tasks, or one from behind a
    mark, may have left some further back; the time that is left goes to walking there, on and on from end to end.
    """

    def __init__(self, call: Call, dialect: Dialect) -> None:
        self._call = call
        self._dialect = dialect
        self._near: dict[Key, Place] = {}
        """Where a walk from the front was interrupted."""
        self._far: dict[Key, Place] = {}
        """How far the walk behind it came."""
        self._cost = Cost()
        self.pause = 0.0

    def sweep(self, lanes: Iterable[Key], limit: int = 1_000, budget: float = BUDGET) -> int:
        """Walk for as long as the budget allows, or until `limit` leases were taken back. Answers how many were."""
        started = time.monotonic()
        end, taken, long = started + budget, 0, []
        for lane in lanes:
            found, at = self._walk_near(lane, end, limit - taken)
            taken += found
            if taken >= limit:
                return taken
            if at is not None:
                long.append((lane, at))
        for lane, at in long:
            self._far.setdefault(lane, at)
        while long and taken < limit and time.monotonic() < end:
            lane, at = long.pop(0)
            found, ended = self._walk_far(lane, at, limit - taken)
            taken += found
            if not ended:
                long.append((lane, at))
        self.pause = SHARE * self._cost.of(time.monotonic() - started)
        return taken

    def _walk_near(self, lane: Key, end: float, limit: int) -> tuple[int, Place | None]:
        """From the front as far as jobs have been claimed. Answers where the rest of the lane begins, if it has one."""
        place, taken = self._near.pop(lane, START), 0
        while True:
            walked = self._walk(lane, place)
            taken += self._take_back(walked.expired[: limit - taken])
            if taken >= limit or (not walked.ended and walked.claimed and time.monotonic() >= end):
                self._near[lane] = place if taken >= limit else walked.at
                return taken, None
            if walked.ended:
                self._far.pop(lane, None)
                return taken, None
            if not walked.claimed:
                return taken, walked.at
            place = walked.at

    def _walk_far(self, lane: Key, begin: Place, limit: int) -> tuple[int, bool]:
        """One stretch of the rest. Answers what was taken back, and whether this was the end of the lane."""
        walked = self._walk(lane, max(self._far[lane], begin))
        taken = self._take_back(walked.expired[:limit])
        if taken < limit:
            self._far[lane] = begin if walked.ended else walked.at
        return taken, walked.ended

    def _walk(self, lane: Key, place: Place) -> Walked:
        walked: Walked = self._call(lambda: operations.walk(*lane, place))
        return walked

    def _take_back(self, expired: list[str]) -> int:
        if not expired:
            return 0
        released, buried = self._call(lambda: operations.take_back(self._dialect, expired))
        return int(released + buried)
