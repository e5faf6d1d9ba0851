"""Operations of workers among themselves: the roll of who is alive, the bell, and shared duties."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from dibs.model.duration import SECOND, Micros, from_instant
from dibs.model.json_text import decode
from dibs.store.runner import Operation
from dibs.store.statement import Rows, sql

QUIET = 0.05
"""Seconds a producer believes what it was told, that nobody sleeps. A worker that falls asleep looks out for twice
as long for what is not rung for."""


class Presence(NamedTuple):
    """What a worker tells of itself."""

    id: str
    host: str
    pid: int
    version: str
    queues: str | None
    concurrency: int
    running: int
    state: str


class WorkerState(NamedTuple):
    """A worker as others see it; `silent_for` is in seconds."""

    id: str
    host: str
    pid: int
    version: str
    queues: list[str] | None
    concurrency: int
    running: int
    state: str
    started_at: datetime
    silent_for: float


def be_present(presence: Presence) -> Operation[None]:
    """Say that a worker is alive."""
    yield sql("worker_beat", **presence._asdict())


def sleep(worker: str, span: Micros) -> Operation[None]:
    """Ask producers to ring for so long from now on; zero means awake."""
    yield sql("worker_sleep", id=worker, span=span)


def leave(worker: str) -> Operation[None]:
    """Say that a worker has stopped."""
    yield sql("worker_gone", id=worker)


def forget_silent(span: Micros) -> Operation[None]:
    """Forget workers that have been silent for so long."""
    yield sql("forget_workers", span=span)


def workers() -> Operation[list[WorkerState]]:
    """The workers, oldest first."""
    rows: Rows = yield sql("workers")
    return [_state(row) for row in rows]


def _state(row: tuple[Any, ...]) -> WorkerState:
    return WorkerState(
        id=row[0],
        host=row[1],
        pid=row[2],
        version=row[3],
        queues=decode(row[4]) if row[4] else None,
        concurrency=row[5],
        running=row[6],
        state=row[7],
        started_at=from_instant(row[8]),
        silent_for=row[9] / SECOND,
    )


def add_chore(name: str) -> Operation[None]:
    """Make a duty known."""
    yield sql("add_chore", name=name)


def take_chore(name: str, every: Micros, worker: str) -> Operation[bool]:
    """Take a duty if it is due. One of many workers succeeds; if it dies, the duty is due again after `every`."""
    rows: Rows = yield sql("take_chore", name=name, every=every, worker=worker)
    return bool(rows)
