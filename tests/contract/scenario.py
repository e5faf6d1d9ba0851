"""One story that uses every verb, and what it should have led to: told again in other ways it must end the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from dibs import Backoff, Dibs
from dibs.model.job import JobRecord
from tests.support.clock import FakeClock

SEEN = (
    *("task", "priority", "status", "payload", "result", "unique_key", "attempts", "crashes", "token", "tags"),
    "last_error",
)


def tell(jobs: Any, queue: str, clock: FakeClock) -> list[Any]:
    """Use every verb on one queue; answers everything that was seen on the way, without ids and times."""
    return [*_enqueue(jobs, queue, clock), *_settle(jobs, queue, clock), *_operate(jobs, queue, clock)]


def _enqueue(jobs: Any, queue: str, clock: FakeClock) -> Iterator[Any]:
    yield jobs.configure(queue, backoff=Backoff.none(), max_crashes=2)
    first = jobs.enqueue("a", {"n": 0}, queue=queue, unique="k0")
    yield first.created
    again = jobs.enqueue("a", {"n": 1}, queue=queue, unique="k0")
    yield again.created, again.id == first.id
    replaced = jobs.enqueue("a", {"n": 2}, queue=queue, unique="k0", on_conflict="replace", tags=["t"])
    yield replaced.created, replaced.replaced
    plain = [Dibs.job(jobs_of(jobs), "b", {"n": n}, queue=queue, priority=n) for n in range(6)]
    yield [handle.created for handle in jobs.enqueue_many(plain)]
    mixed = [Dibs.job(jobs_of(jobs), "c", queue=queue, unique=key, delay="1h") for key in ("k1", "k0", "k1")]
    mixed.append(Dibs.job(jobs_of(jobs), "d", queue=queue, delay="2h"))
    yield [handle.created for handle in jobs.enqueue_many(mixed)]
    yield jobs.count(queue=queue)


def _settle(jobs: Any, queue: str, clock: FakeClock) -> Iterator[Any]:
    held = jobs.dequeue([queue], limit=9, lease="10s", worker="w")
    yield [(job.task, job.payload, job.token, job.attempts) for job in held]
    first, second, third, fourth, fifth, *rest = held
    yield jobs.heartbeat(first, "20s"), jobs.ack(first, {"done": 1})
    yield jobs.nack(second, ValueError("no")), jobs.snooze(third, "1m")
    yield len(jobs.ack_many([(fourth, 4), second])), len(jobs.nack_many([(fifth, "no")], "2m"))
    yield len(jobs.heartbeat_many(rest)), len(jobs.snooze_many(rest, 0))
    again = jobs.dequeue([queue], ["a", "b"], limit=9, lease="1s")
    yield sorted((job.task, job.token, job.attempts) for job in again)
    clock.advance("2s")
    yield jobs.reclaim()
    yield _records(jobs, queue)


def _operate(jobs: Any, queue: str, clock: FakeClock) -> Iterator[Any]:
    ids = [record.id for record in jobs.list(queue=queue, status=["ready", "retrying", "scheduled"])]
    yield jobs.pause(queue, "why"), len(jobs.dequeue([queue])), jobs.resume(queue)
    yield jobs.reschedule(ids[0], run_at=clock.time() + timedelta(hours=2)), jobs.run_now(*ids[:2])
    yield jobs.cancel(ids[0]), jobs.discard(ids[1]), jobs.cancel(ids[0], ids[1])
    yield jobs.retry(ids[1]), jobs.retry(queue=queue, status="completed")
    yield _records(jobs, queue)
    yield sorted((row.priority, row.status, row.jobs) for row in jobs.stats().live if row.queue == queue)
    yield [(s.pause_reason, s.settings) for s in jobs.queues() if s.name == queue]
    yield jobs.cancel(queue=queue) > 0, jobs.count(queue=queue, status="ready")
    yield jobs.count_prunable(queue, 0), jobs.prune(queue, 0), jobs.count(queue=queue)


def jobs_of(jobs: Any) -> Dibs:
    """The object behind a proxy."""
    found: Dibs = getattr(jobs, "behind", jobs)
    return found


def _records(jobs: Any, queue: str) -> list[Any]:
    records = [jobs.get(job_id) for job_id in jobs.find(queue=queue)]
    return [(*(getattr(record, name) for name in SEEN), _errors(record)) for record in records]


def _errors(record: JobRecord) -> list[tuple[Any, ...]]:
    return [(error.attempt, error.kind, error.type, error.message) for error in record.errors]
