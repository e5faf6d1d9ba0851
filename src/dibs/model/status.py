"""The public states of a job and the only ways from one to another."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Status(StrEnum):
    """Where a job stands. Derived from its row, never stored twice."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    READY = "ready"
    CLAIMED = "claimed"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"

    @property
    def final(self) -> bool:
        """Whether the job has ended.

        >>> Status.DEAD.final, Status.RETRYING.final
        (True, False)
        """
        return self in FINAL


class Priority(IntEnum):
    """Three ready-made priorities; any whole number will do, larger runs first.

    >>> Priority.EXPLICIT > Priority.DISCOVERED > Priority.BACKFILL
    True
    """

    EXPLICIT = 150
    DISCOVERED = 100
    BACKFILL = 30


FINAL = frozenset({Status.COMPLETED, Status.DEAD, Status.CANCELLED, Status.DISCARDED})
WAITING = frozenset({Status.SCHEDULED, Status.BLOCKED, Status.READY, Status.RETRYING})
HELD = frozenset({Status.CLAIMED, Status.RUNNING})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.SCHEDULED: frozenset({Status.READY, Status.CANCELLED, Status.DISCARDED}),
    Status.BLOCKED: frozenset({Status.READY, Status.CANCELLED, Status.DISCARDED}),
    Status.READY: frozenset({Status.CLAIMED, Status.SCHEDULED, Status.CANCELLED, Status.DISCARDED}),
    Status.RETRYING: frozenset({Status.READY, Status.CANCELLED, Status.DISCARDED}),
    Status.CLAIMED: frozenset({Status.RUNNING, *WAITING, *FINAL}) - {Status.BLOCKED},
    Status.RUNNING: frozenset({*WAITING, *FINAL}) - {Status.BLOCKED},
    Status.COMPLETED: frozenset({Status.READY}),
    Status.DEAD: frozenset({Status.READY}),
    Status.CANCELLED: frozenset({Status.READY}),
    Status.DISCARDED: frozenset({Status.READY}),
}
"""From each status to those that may follow. Leaving a final one is an operator's retry, never dibs' own act."""
