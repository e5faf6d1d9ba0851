"""Who works: the workers that are heard of, those that are lost, and the queues that nobody serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.cli import output

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.store.roll import WorkerState

LOST_AFTER = 25.0
"""Seconds of silence after which a worker is thought to be lost: several beats of its roll call."""


def lost(worker: WorkerState) -> bool:
    """Whether a worker has not been heard of for too long: killed, cut off, or suspended."""
    return worker.silent_for > LOST_AFTER


def serving(door: Dibs, queue: str) -> list[str]:
    """Ids of the live workers that serve a queue."""
    from dibs.store.claim import serves

    return [
        worker.id
        for worker in door.workers()
        if not lost(worker) and serves(None if worker.queues is None else frozenset(worker.queues), queue)
    ]


def warn_without_worker(door: Dibs, queue: str) -> None:
    """Say that no live worker serves a queue, or that it is paused: the usual reasons for waiting."""
    if not serving(door, queue):
        output.warn("no-worker", queue=queue)
    for state in door.queues():
        if state.name == queue and state.paused_at is not None:
            output.warn("queue-paused", queue=queue, reason=state.pause_reason or "-")
