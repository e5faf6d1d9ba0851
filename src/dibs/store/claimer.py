"""Claiming from many lanes: which lane next, from which mark, and when to look back or around."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dibs.errors import DatabaseUnreachable
from dibs.model.duration import SECOND, Micros
from dibs.model.job import Job
from dibs.model.lane import BUSY_LOOK, SHARE, Cost, Lane, Look, claim_order
from dibs.model.settings import DEFAULT_LEASE, QueueSettings
from dibs.store import claim as operations
from dibs.store import queues as queue_operations
from dibs.store.claim import MOST_CRASHES, START, Claimant, short_mark
from dibs.store.dialect import Dialect

Call = Callable[[Callable[[], Any]], Any]
"""Runs the operation a function makes, in a transaction of its own."""

REFRESH = 1.0
"""Seconds between two looks at the lanes and the settings of queues."""
MANY_LANES = 2
"""With more lanes than these an idle claimer peeks at all of them in one statement."""


_EVERYWHERE: Mapping[str, int] = {}


class Claimer:
    """Claims jobs of some queues for one worker. Not thread-safe: one thread claims."""

    def __init__(
        self,
        call: Call,
        dialect: Dialect,
        worker: str,
        queues: frozenset[str] | None = None,
        tasks: tuple[str, ...] | None = None,
        lease: float | None = None,
    ) -> None:
        self._call = call
        self.dialect = dialect
        self._worker = worker
        self._queues = queues
        self.tasks = tasks
        """Only these; None is any."""
        self._lease = lease
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._refresh_due = 0.0
        self._discover_due = 0.0
        self._look_due = 0.0
        self._quiet_due = 0.0
        self._look_cost, self._quiet_cost, self._discover_cost = Cost(), Cost(), Cost()
        self._rung = False
        self._turn = 0
        self._hurried = True
        self._rooms: dict[str, int] = {}
        self._innocents = False
        self.database_now: Micros = 0
        self.settings: dict[str, tuple[bool, QueueSettings]] = {}
        self.due_in: float | None = None

    @property
    def lanes(self) -> list[Lane]:
        """The lanes known so far."""
        return list(self._lanes.values())

    def hurry(self) -> None:
        """Somebody rang: do not peek first, claim; and if nothing is there, look around for what rang."""
        self._hurried = self._rung = True

    def rewind(self, jobs: Iterable[Job]) -> None:
        """Go back to jobs that were handed back to their places."""
        for job in jobs:
            self._lanes[job.queue, job.priority].rewind(job.row)

    def forget(self) -> None:
        """Read lanes and settings again at the next claim."""
        self._refresh_due = 0.0

    def claim(
        self, limit: int, thorough: bool = False, rooms: Mapping[str, int] = _EVERYWHERE, innocents: bool = False
    ) -> list[Job]:
        """Lease up to `limit` jobs, highest priority first. Empty if there is nothing to do now.

        `rooms` caps how many of certain queues; `innocents` passes over jobs that have lost a holder before.

        What has just appeared in a new lane, or behind a mark, is found within a second. `thorough` finds it
        now: for somebody who asks once and believes the answer. A ring does so too, as often as that is cheap.
        """
        started = time.monotonic()
        self._rooms, self._innocents = dict(rooms), innocents
        if started >= self._refresh_due:
            self._refresh(started)
        discovers = started >= self._discover_due  # also by a claimer that never runs dry
        if discovers:
            self._discover()
        jobs = self._visit(limit)
        if not jobs and thorough:
            self._refresh(started)
            if not discovers:
                self._discover()
            jobs = self._visit(limit, thorough=True)
        elif not jobs and self._rung and started >= self._look_due:
            jobs = self._look_around(limit, started)
        self._turn += 1
        self._hurried, self._rung = bool(jobs), False
        return jobs

    def _look_around(self, limit: int, started: float) -> list[Job]:
        """What rang may be in a lane not known yet, or just behind a mark: a commit that came late."""
        self._refresh(started)
        jobs = self._visit(limit, thorough=True)
        ended = time.monotonic()
        self._look_due = ended + SHARE * self._look_cost.of(ended - started)
        return jobs

    def lease_of(self, queue: str) -> float:
        """Seconds a claim of this queue lasts."""
        return self._lease or self._setting(queue).lease or DEFAULT_LEASE

    def _setting(self, queue: str) -> QueueSettings:
        return self.settings.get(queue, _NOTHING)[1]

    def _visit(self, limit: int, thorough: bool = False) -> list[Job]:
        jobs: list[Job] = []
        for lane in self._promising(thorough):
            room = min(limit - len(jobs), self._rooms.get(lane.queue, limit))
            try:
                found = self._claim_lane(lane, room, thorough) if room > 0 else []
            except DatabaseUnreachable:
                if not jobs:
                    raise
                break  # what other lanes gave is ours already; the next claim will meet the trouble again
            if lane.queue in self._rooms:
                self._rooms[lane.queue] -= len(found)
            jobs += found
            if len(jobs) >= limit:
                break
        return jobs

    def _promising(self, thorough: bool) -> list[Lane]:
        """The lanes worth a claim, in order. Few lanes are all tried while busy or just woken; else a peek tells."""
        if len(self._lanes) <= MANY_LANES and (thorough or self._hurried):
            self.due_in = None
            return claim_order(self.lanes, self._turn)
        return claim_order(self._peeked(thorough), self._turn)

    def _peeked(self, thorough: bool) -> list[Lane]:
        """The lanes that one statement sees work in; where it is time to look behind a mark, it does.

        Lanes that have long been quiet are left out until there is time for them, unless somebody rang: a thousand
        of them, most of them done with for good, must not slow down each claim of the one where work is.
        """
        started, lanes = time.monotonic(), self.lanes
        every = thorough or self._rung or started >= self._quiet_due
        chosen = lanes if every else [lane for lane in lanes if lane.lively(started)]
        ready = self._peek(chosen, started, thorough) if chosen else []
        if every:
            ended = time.monotonic()
            self._quiet_due = ended + SHARE * self._quiet_cost.of(ended - started)
        due = [lane.next_due for lane in lanes if lane.next_due is not None]
        self.due_in = max(0.0, min(due) - started) if due else None
        return ready

    def _peek(self, lanes: list[Lane], started: float, thorough: bool) -> list[Lane]:
        looks: list[Look | None] = [lane.look_due(started) or ("short" if thorough else None) for lane in lanes]
        starts = [_start(lane, look) for lane, look in zip(lanes, looks, strict=True)]
        seen = {glance.lane: glance for glance in self._call(lambda: operations.peek(self.dialect, lanes, starts))}
        cost = (time.monotonic() - started) / len(lanes)
        ready = []
        for lane, look in zip(lanes, looks, strict=True):
            glance = seen[lane.queue, lane.priority]
            lane.next_due = None if glance.due_in is None else started + glance.due_in / SECOND
            if glance.ready:
                ready.append(lane)
                continue
            lane.found_empty(self.database_now, started)
            if look is not None:
                lane.looked(look, started, cost, found=False)
        return ready

    def _claim_lane(self, lane: Lane, limit: int, thorough: bool) -> list[Job]:
        """Claim from the mark on, or from behind it when a look is due: a look takes the place of a claim."""
        started = time.monotonic()
        look: Look | None = lane.look_due(started) or ("short" if thorough else None)
        jobs = self._lease_jobs(lane, _start(lane, look), limit)
        if look is not None:
            lane.looked(look, started, time.monotonic() - started, bool(jobs))
        if self._innocents:
            lane.empty_since = None if jobs else lane.empty_since
            return jobs  # the mark stays with the jobs that were passed over
        lane.claimed([job.row for job in jobs], look is not None and len(jobs) == limit)
        if self.tasks is not None and len(jobs) < limit:
            lane.passed(self.database_now)
        elif not jobs:
            lane.found_empty(self.database_now, started)
        return jobs

    def _lease_jobs(self, lane: Lane, mark: tuple[Micros, str], limit: int) -> list[Job]:
        lease = round(self.lease_of(lane.queue) * SECOND)
        claimant = Claimant(self._worker, self.tasks, lease, 0 if self._innocents else MOST_CRASHES)
        rows = self._call(lambda: operations.claim(self.dialect, lane, mark, limit, claimant))
        return [Job(row, lane.queue, lane.priority, self._worker) for row in rows]

    def _refresh(self, started: float) -> None:
        known, now = self._call(lambda: operations.claimable_lanes(self._queues))
        self.settings = self._call(queue_operations.settings)
        self.database_now = now or self.database_now
        self._add(known)
        self._refresh_due = started + REFRESH

    def _discover(self) -> None:
        started = time.monotonic()
        found = self._call(operations.discover_lanes)
        self._add(lane for lane in found if operations.serves(self._queues, lane[0]))
        cost = time.monotonic() - started
        self._discover_due = started + cost + max(BUSY_LOOK, SHARE * self._discover_cost.of(cost))

    def _add(self, lanes: Any) -> None:
        for queue, priority in lanes:
            if (queue, priority) not in self._lanes:
                self._lanes[queue, priority] = Lane(queue, priority)
                self._hurried = True


def _start(lane: Lane, look: Look | None) -> tuple[Micros, str]:
    """Where a claim or a peek begins."""
    if look == "full":
        return START
    return short_mark(lane) if look == "short" else (lane.mark_at, lane.mark_id)


_NOTHING = (False, QueueSettings())
