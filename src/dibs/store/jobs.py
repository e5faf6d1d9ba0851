"""Operations by which operators look at jobs and act on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dibs.model.duration import Micros, from_instant, maybe_instant
from dibs.model.job import AttemptError, JobRecord, JobSettings
from dibs.model.json_text import decode
from dibs.model.status import FINAL, Status
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.store.statement import ATOMIC, Rows, sql


class Filter(NamedTuple):
    """Which jobs: those that fit every field that is not None."""

    queue: str | None = None
    task: str | None = None
    statuses: frozenset[Status] | None = None


class Ended(NamedTuple):
    """How a job stands, for somebody who waits for its end."""

    status: Status
    result: Any
    last_error: str | None


def get(dialect: Dialect, ids: Sequence[str]) -> Operation[list[JobRecord]]:
    """Jobs by id, live or finished, in the order asked; unknown ids are left out."""
    rows: Rows = yield sql("get_jobs", ids=dialect.array(ids))
    found = {row[0]: _record(row) for row in rows}
    return [found[job_id] for job_id in ids if job_id in found]


def errors(job_id: str) -> Operation[tuple[AttemptError, ...]]:
    """What went wrong in the attempts of a job, oldest first."""
    rows: Rows = yield sql("get_errors", id=job_id)
    return tuple(_attempt_error(row) for row in rows)


def ended(job_id: str) -> Operation[Ended | None]:
    """Status, result and last error of a job."""
    rows: Rows = yield sql("live_outcome", id=job_id)
    if not rows:
        return None
    status, result, error = rows[0]
    return Ended(Status(status), None if result is None else decode(result), error)


def find(dialect: Dialect, wanted: Filter, limit: int, before: str | None = None) -> Operation[list[str]]:
    """Ids of jobs that fit, newest first, those older than `before` only."""
    found: set[str] = set()  # a job that ends between the two statements is in both answers
    live = None if wanted.statuses is None else wanted.statuses - FINAL
    final = None if wanted.statuses is None else wanted.statuses & FINAL
    for name, statuses in (("list_live", live), ("list_finished", final)):
        if statuses is None or statuses:
            rows: Rows = yield sql(
                name,
                queue=wanted.queue,
                task=wanted.task,
                statuses=None if statuses is None else dialect.array(sorted(statuses)),
                before=before,
                limit=limit,
            )
            found |= {row[0] for row in rows}
    return sorted(found, reverse=True)[:limit]


def end_waiting(dialect: Dialect, ids: Sequence[str], outcome: str) -> Operation[set[str]]:
    """End jobs that nobody holds, as cancelled or discarded. Answers the ids that were ended."""
    rows: Rows = yield sql("end_waiting", ids=dialect.array(ids), outcome=outcome)
    return {row[0] for row in rows}


def requeue(dialect: Dialect, ids: Sequence[str]) -> Operation[set[str]]:
    """Bring finished jobs back to life, with all their attempts before them. Answers the ids that live again."""
    yield ATOMIC
    rows: Rows = yield sql("requeue", ids=dialect.array(ids))
    for queue, priority in sorted({(row[1], row[2]) for row in rows}):
        yield sql("add_lane", queue=queue, priority=priority)
    if dialect.can.ring_sleepers:
        yield sql("ring")
    return {row[0] for row in rows}


def run_now(dialect: Dialect, ids: Sequence[str]) -> Operation[set[str]]:
    """Make waiting jobs due at once. Answers the ids that were moved."""
    rows: Rows = yield sql("run_now", ids=dialect.array(ids))
    if rows and dialect.can.ring_sleepers:
        yield sql("ring")
    return {row[0] for row in rows}


def reschedule(dialect: Dialect, ids: Sequence[str], run_at: Micros) -> Operation[set[str]]:
    """Make waiting jobs due at another time. Answers the ids that were moved."""
    rows: Rows = yield sql("reschedule", ids=dialect.array(ids), run_at=run_at)
    return {row[0] for row in rows}


def clock() -> Operation[Micros]:
    """The database's time."""
    rows: Rows = yield sql("clock")
    return int(rows[0][0])


def _record(row: tuple[Any, ...]) -> JobRecord:
    settings = JobSettings.read(row[13])
    return JobRecord(
        id=row[0],
        queue=row[1],
        task=row[2],
        priority=row[3],
        status=Status(row[4]),
        payload=decode(row[5]),
        result=None if row[6] is None else decode(row[6]),
        unique_key=row[7],
        attempts=row[8],
        max_attempts=row[9],
        crashes=row[10],
        worker_id=row[11],
        token=row[12],
        tags=settings.tags,
        last_error=row[14],
        created_at=from_instant(row[15]),
        available_at=maybe_instant(row[16]),
        lease_until=maybe_instant(row[17]),
        claimed_at=maybe_instant(row[18]),
        started_at=maybe_instant(row[19]),
        finished_at=maybe_instant(row[20]),
    )


def _attempt_error(row: tuple[Any, ...]) -> AttemptError:
    attempt, kind, text, worker, at = row
    problem = decode(text)
    return AttemptError(
        attempt, kind, problem["type"], problem["message"], problem["traceback"], worker, from_instant(at)
    )
