"""Operations that take expired leases back."""

from __future__ import annotations

from typing import NamedTuple

from dibs.model.backoff import DEFAULT_BACKOFF
from dibs.model.duration import Micros
from dibs.model.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES, JobSettings
from dibs.model.outcome import Attempt, Final, Policy, Problem, after_crash
from dibs.model.settings import QueueSettings
from dibs.store.claim import START
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.store.settle import settle
from dibs.store.statement import ATOMIC, Rows, sql

STRETCH = 2_000
"""Index entries one walk reads at most."""


class Walked(NamedTuple):
    """How far a walk came, whether that was the end of the lane, what it found claimed ever, and what expired."""

    at: tuple[Micros, str]
    ended: bool
    claimed: int
    expired: list[str]


def walk(queue: str, priority: int, start: tuple[Micros, str]) -> Operation[Walked]:
    """Read the next stretch of a lane."""
    rows: Rows = yield sql("walk", queue=queue, priority=priority, from_at=start[0], from_id=start[1], limit=STRETCH)
    if not rows:
        return Walked(START, True, 0, [])
    at, last, read, claimed, expired = rows[0]
    return Walked((at, last), read < STRETCH, claimed, expired.split(",") if expired else [])


def take_back(dialect: Dialect, ids: list[str]) -> Operation[tuple[int, int]]:
    """Release jobs whose holder is lost, or bury those that have used up a budget. Answers (released, buried)."""
    yield ATOMIC
    rows: Rows = yield sql("lock_expired", ids=dialect.array(ids))
    settlements = []
    attempts: dict[str, tuple[int, str]] = {}
    for job_id, token, tried, crashes, worker, max_attempts, queue_text, job_text in rows:
        problem = Problem("lease lost", "LeaseLost", f"Worker {worker} was lost while it held this job")
        policy = _policy(max_attempts, QueueSettings.read(queue_text), JobSettings.read(job_text))
        settlements.append(after_crash(Attempt(job_id, token, tried, crashes), policy, problem))
        attempts[job_id] = (tried, worker)
    if not settlements:
        return 0, 0
    lost = yield from settle(dialect, settlements, attempts)
    done = [item for item in settlements if item.id not in lost]
    buried = sum(isinstance(item, Final) for item in done)
    return len(done) - buried, buried


def _policy(max_attempts: int | None, queue: QueueSettings, job: JobSettings) -> Policy:
    return Policy(
        max_attempts or queue.max_attempts or DEFAULT_MAX_ATTEMPTS,
        job.max_crashes or queue.max_crashes or DEFAULT_MAX_CRASHES,
        job.backoff or queue.backoff or DEFAULT_BACKOFF,
    )
