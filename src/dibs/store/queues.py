"""Operations on queues: settings, pause and resume, counts, and forgetting old history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dibs.model.duration import SECOND, Micros, maybe_instant
from dibs.model.json_text import encode
from dibs.model.settings import QueueSettings
from dibs.model.status import FINAL
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.store.statement import Rows, sql

COUNT_CAP = 100_000
"""Rows of a lane (or of recent history, or failed attempts) that a count reads at most."""
PRUNE_BATCH = 5_000


class QueueState(NamedTuple):
    """A queue, whether it is paused, and its settings."""

    name: str
    paused_at: datetime | None
    pause_reason: str | None
    settings: QueueSettings


class LaneCount(NamedTuple):
    """Live jobs of one lane in one state; `oldest` is the age in seconds of the job that is due longest."""

    queue: str
    priority: int
    status: str
    jobs: int
    oldest: float


class Counts(NamedTuple):
    """What is in the database: live jobs by lane and state, jobs finished recently by queue and outcome, and by queue
    the dead ones, whenever they died."""

    live: list[LaneCount]
    finished: list[tuple[str, str, int]]
    capped: bool
    dead: list[tuple[str, int]]


def queues() -> Operation[list[QueueState]]:
    """Every queue that is configured or holds jobs."""
    rows: Rows = yield sql("queues")
    return [
        QueueState(name, maybe_instant(paused), reason, QueueSettings.read(settings))
        for name, paused, reason, settings in rows
    ]


def pause(queue: str, reason: str | None) -> Operation[None]:
    """Stop claims from a queue; what runs goes on."""
    yield sql("pause", queue=queue, reason=reason)


def resume(dialect: Dialect, queue: str) -> Operation[None]:
    """Allow claims from a queue again, and wake the workers."""
    yield sql("resume", queue=queue)
    if dialect.can.ring_sleepers:
        yield sql("ring")


def configure(queue: str, changes: dict[str, Any]) -> Operation[None]:
    """Change settings of a queue."""
    yield sql("configure", queue=queue, settings=encode(changes, "settings").decode())


def settings() -> Operation[dict[str, tuple[bool, QueueSettings]]]:
    """Of each configured queue: whether it is paused, and its settings."""
    rows: Rows = yield sql("settings")
    return {name: (bool(paused), QueueSettings.read(text)) for name, paused, text in rows}


def counts(span: Micros) -> Operation[Counts]:
    """Count live and dead jobs, and those that finished within a span. Reads at most `COUNT_CAP` rows of a lane."""
    live: Rows = yield sql("count_live", cap=COUNT_CAP)
    finished: Rows = yield sql("count_finished", span=span, cap=COUNT_CAP)
    dead: Rows = yield sql("count_dead", cap=COUNT_CAP)
    counted = [
        LaneCount(queue, priority, status, number, max(0.0, float(oldest or 0) / SECOND))
        for queue, priority, status, number, oldest in live
    ]
    walked = sum(row[1] for row in dead if row[0] is None)
    capped = _capped(counted) or COUNT_CAP in (walked, sum(row[2] for row in finished))
    buried = sorted((row[0], row[1]) for row in dead if row[0] is not None)
    return Counts(counted, [(row[0], row[1], row[2]) for row in finished], capped, buried)


def _capped(counted: Sequence[LaneCount]) -> bool:
    """Whether a lane was not read to its end, or, where the cap is one for all lanes, whether that was reached."""
    lanes: dict[tuple[str, int], int] = {}
    for row in counted:
        lanes[row.queue, row.priority] = lanes.get((row.queue, row.priority), 0) + row.jobs
    return any(jobs >= COUNT_CAP for jobs in lanes.values()) or sum(lanes.values()) == COUNT_CAP


def prune(
    dialect: Dialect, queue: str, outcomes: Sequence[str], keep: Micros, limit: int = PRUNE_BATCH
) -> Operation[int]:
    """Forget finished jobs of a queue that ended longer than `keep` ago, at most `limit`. Answers how many."""
    final = [outcome for outcome in outcomes if outcome in FINAL]
    rows: Rows = yield sql("prune", queue=queue, keep=keep, outcomes=dialect.array(final), limit=limit)
    return len(rows)


def count_old(dialect: Dialect, queue: str, outcomes: Sequence[str], keep: Micros) -> Operation[int]:
    """How many jobs `prune` would forget."""
    rows: Rows = yield sql("count_old", queue=queue, keep=keep, outcomes=dialect.array(outcomes))
    return int(rows[0][0])
