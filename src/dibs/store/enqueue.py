"""Operations that put jobs in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, cast

from dibs.errors import Duplicate
from dibs.model.job import Enqueued, NewJob
from dibs.model.load import loads
from dibs.model.options import JobOptions
from dibs.store.bulk import COLUMNS, chunks
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.store.statement import ATOMIC, Copy, Rows, sql

Lanes = set[tuple[str, int]]
BATCH = 5_000
"""Jobs of one statement; larger loads are cut, and heavier ones (`model/load.py`)."""


def enqueue(job: NewJob, job_id: str, ring: bool) -> Operation[Enqueued]:
    """Store one job, and ring if somebody may sleep. With a unique key, the answer may be the live job that has it."""
    if job.options.unique is not None:
        return (yield from _enqueue_unique(job, job_id))
    if not ring:
        yield sql("enqueue", **_values(job, job_id))
        return Enqueued(job_id, True)
    rows: Rows = yield sql("enqueue_and_ring", **_values(job, job_id))
    return Enqueued(job_id, True, quiet=rows[0][0] is None)


def enqueue_again(dialect: Dialect, job: NewJob, job_id: str) -> Operation[Enqueued]:
    """Store a job whose first enqueue got no answer: it may be there already, or even be finished."""
    answers = yield from enqueue_many_again(dialect, [job], [job_id])
    return answers[0]


def _enqueue_unique(job: NewJob, job_id: str) -> Operation[Enqueued]:
    values = _values(job, job_id)
    if job.options.on_conflict == "replace":
        yield ATOMIC  # the row stays locked in between: nobody can claim or finish what is about to be replaced
    rows: Rows = yield sql("enqueue_unique", **values, unique_key=job.options.unique)
    found: str = rows[0][0]
    if found == job_id:
        return Enqueued(job_id, True)
    if job.options.on_conflict == "raise":
        raise Duplicate(
            f"Unique key {job.options.unique!r} of queue {job.options.queue!r} belongs to job {found}.",
            id=found,
        )
    if job.options.on_conflict == "replace":
        del values["queue"]
        replaced: Rows = yield sql("replace_waiting", **{**values, "id": found})
        return Enqueued(found, False, bool(replaced))
    return Enqueued(found, False)


def enqueue_many(dialect: Dialect, bulk: bool, jobs: Sequence[NewJob], ids: Sequence[str]) -> Operation[list[Enqueued]]:
    """Store many jobs: all of them or, if one is refused, none. Answers come in the order asked."""
    if (
        bulk
        and dialect.can.load_in_bulk
        and dialect.form is not None
        and all(options.plain for options in _distinct(jobs))
    ):
        yield Copy("copy_jobs", chunks(dialect.form, jobs, ids), COLUMNS)
        if dialect.can.ring_sleepers:
            yield sql("ring")
        return cast("list[Enqueued]", list(zip(ids, repeat(True), repeat(False), repeat(False), strict=False)))
    answers = [Enqueued(job_id, True) for job_id in ids]
    plain = [index for index, job in enumerate(jobs) if job.options.unique is None]
    cuts = list(loads([len(jobs[index].payload) for index in plain], BATCH))
    if len(plain) < len(jobs) or len(cuts) > 1:
        yield ATOMIC
    for cut in cuts:
        chosen = plain[cut]
        columns = _columns([jobs[index] for index in chosen], [ids[index] for index in chosen])
        yield sql("enqueue_batch", **dialect.columns("jobs", **columns))
    for index in _by_key(jobs):
        answers[index] = yield from _enqueue_unique(jobs[index], ids[index])
    if plain and dialect.can.ring_sleepers:
        yield sql("ring")
    return answers


def enqueue_many_again(dialect: Dialect, jobs: Sequence[NewJob], ids: Sequence[str]) -> Operation[list[Enqueued]]:
    """Store jobs whose first load got no answer: those that are there, or are finished by now, are left alone."""
    yield ATOMIC
    rows: Rows = yield sql("stored", ids=dialect.array(ids))
    there = {row[0] for row in rows}
    missing = [index for index, job_id in enumerate(ids) if job_id not in there]
    lost = [ids[index] for index in missing]
    answers = [Enqueued(job_id, True) for job_id in ids]
    stored = yield from enqueue_many(dialect, False, [jobs[index] for index in missing], lost)
    # The first load may have come through, and its jobs have ended, between the two statements above.
    yield sql("drop_finished", ids=dialect.array(lost))
    for index, answer in zip(missing, stored, strict=True):
        answers[index] = answer
    return answers


def _by_key(jobs: Sequence[NewJob]) -> list[int]:
    """Keyed jobs in the order of their keys: two batches in opposite orders would wait for each other."""
    keyed = [index for index, job in enumerate(jobs) if job.options.unique is not None]
    return sorted(keyed, key=lambda index: (jobs[index].options.queue, jobs[index].options.unique or "", index))


def add_lanes(lanes: Lanes) -> Operation[None]:
    """Remember lanes seen for the first time by this process."""
    for queue, priority in sorted(lanes):
        yield sql("add_lane", queue=queue, priority=priority)


def lanes_of(jobs: Sequence[NewJob]) -> Lanes:
    """The lanes these jobs go to."""
    return {(options.queue, options.priority) for options in _distinct(jobs)}


def _distinct(jobs: Sequence[NewJob]) -> Iterable[JobOptions]:
    """The options in use: jobs of one task share theirs, so there are few to look at."""
    return {id(job.options): job.options for job in jobs}.values()


def _values(job: NewJob, job_id: str) -> dict[str, Any]:
    options = job.options
    return {
        "id": job_id,
        "queue": options.queue,
        "task": job.task,
        "priority": options.priority,
        "payload": job.payload,
        "max_attempts": options.max_attempts,
        "options": options.extra,
        "run_at": options.run_at,
        "delay": options.delay,
    }


def _columns(jobs: Sequence[NewJob], ids: Sequence[str]) -> dict[str, Sequence[Any]]:
    every = [job.options for job in jobs]
    return {
        "ids": ids,
        "queues": [options.queue for options in every],
        "tasks": [job.task for job in jobs],
        "priorities": [options.priority for options in every],
        "payloads": [job.payload for job in jobs],
        "max_attempts": [options.max_attempts for options in every],
        "options": [options.extra for options in every],
        "run_ats": [options.run_at for options in every],
        "delays": [options.delay for options in every],
    }
