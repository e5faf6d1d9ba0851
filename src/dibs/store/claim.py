"""Operations that lease jobs. How a lease is stored is known here, in `settle` and in `reap`, nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple, cast

from dibs.model.duration import Micros
from dibs.model.identity import NIL
from dibs.model.job import Row
from dibs.model.lane import SHORT, Lane
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.store.statement import Rows, sql

START = (0, NIL)
RESERVED = "dibs."
"""How names of queues begin that only somebody who names them claims from: dibs' own, such as that of `dibs bench`."""

MOST_CRASHES = 2**31 - 1
"""More than any job can have."""


class Claimant(NamedTuple):
    """Who claims, which tasks (all if None), for how long, and what such a job may have been through."""

    worker: str
    tasks: tuple[str, ...] | None
    lease: Micros
    crashes: int = MOST_CRASHES


def claim(
    dialect: Dialect, lane: Lane, mark: tuple[Micros, str], limit: int, claimant: Claimant
) -> Operation[list[Row]]:
    """Lease up to `limit` due jobs of a lane from a mark on, in claim order."""
    params = {
        "queue": lane.queue,
        "priority": lane.priority,
        "mark_at": mark[0],
        "mark_id": mark[1],
        "limit": limit,
        "worker": claimant.worker,
        "lease": claimant.lease,
        "crashes": claimant.crashes,
    }
    if claimant.tasks is None:
        rows: Rows = yield sql("claim", **params)
    else:
        rows = yield sql("claim_tasks", **params, tasks=dialect.array(claimant.tasks))
    # RETURNING has no order of its own. A Row only names the places of the driver's tuple: none is made for it.
    return cast("list[Row]", sorted(rows, key=_place))


_place = itemgetter(7, 0)
"""available_at and id: the order of the lane."""


def short_mark(lane: Lane) -> tuple[Micros, str]:
    """Where a short look begins."""
    return max(0, lane.mark_at - SHORT), NIL


def known_lanes(queues: frozenset[str] | None) -> Operation[tuple[list[tuple[str, int]], Micros]]:
    """The lanes of some queues (really all if None), and the database's time."""
    rows: Rows = yield sql("lanes")
    now = rows[0][2] if rows else 0
    return [(row[0], row[1]) for row in rows if queues is None or row[0] in queues], now


def serves(queues: frozenset[str] | None, queue: str) -> bool:
    """Whether somebody who works for some queues (all if None) claims from a queue.

    >>> serves(None, "mail"), serves(None, "dibs.bench"), serves(frozenset({"dibs.bench"}), "dibs.bench")
    (True, False, True)
    """
    return not queue.startswith(RESERVED) if queues is None else queue in queues


def claimable_lanes(queues: frozenset[str] | None) -> Operation[tuple[list[tuple[str, int]], Micros]]:
    """The lanes that somebody who works for some queues (all if None) claims from, and the database's time."""
    lanes, now = yield from known_lanes(queues)
    return [lane for lane in lanes if serves(queues, lane[0])], now


def discover_lanes() -> Operation[list[tuple[str, int]]]:
    """Find lanes that hold jobs, also those filled by a plain INSERT, and remember them."""
    rows: Rows = yield sql("discover_lanes")
    known: Rows = yield sql("lanes")
    new = {(row[0], row[1]) for row in rows} - {(row[0], row[1]) for row in known}
    for queue, priority in sorted(new):
        yield sql("add_lane", queue=queue, priority=priority)
    return sorted(new)


class Glance(NamedTuple):
    """What a peek saw of a lane: whether there is work now, and how soon the next job is due."""

    lane: tuple[str, int]
    ready: bool
    due_in: Micros | None


def peek(dialect: Dialect, lanes: Sequence[Lane], starts: Sequence[tuple[Micros, str]]) -> Operation[list[Glance]]:
    """Look at many lanes at once, each from its place on, without claiming."""
    rows: Rows = yield sql(
        "peek",
        **dialect.columns(
            "lanes",
            queues=[lane.queue for lane in lanes],
            priorities=[lane.priority for lane in lanes],
            marks_at=[at for at, _ in starts],
            mark_ids=[job_id for _, job_id in starts],
        ),
    )
    return [Glance((row[0], row[1]), bool(row[2]), row[3]) for row in rows]
