"""`dibs worker list`: who works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import as_json, command, pass_target
from dibs.cli.serving import lost
from dibs.cli.tables import Column, state, table
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs.store.roll import WorkerState


@command("worker.list", examples=("dibs worker list", "dibs worker list --json"))
@as_json
@pass_target
def list_workers(target: Target, as_json: bool) -> None:
    """The workers that have been heard of lately."""
    workers = target.door().workers()
    if as_json:
        output.document({"workers": [plain(worker) for worker in workers]})
        return
    table(columns(), [row(worker) for worker in workers])
    if not workers:
        output.note(say("worker.none"))
    for worker in filter(lost, workers):
        output.warn("worker-lost", worker=worker.id, silent=output.span(worker.silent_for))
    versions = sorted({worker.version for worker in workers if not lost(worker)})
    if len(versions) > 1:
        output.warn("mixed-versions", versions=", ".join(versions))


def plain(worker: WorkerState) -> dict[str, Any]:
    """A worker as plain values."""
    return {**worker._asdict(), "lost": lost(worker)}


def columns() -> list[Column]:
    """The columns of `row`."""
    return [
        Column(say("title.worker")),
        Column(say("title.status")),
        Column(say("title.queues"), 50, cut=True),
        Column(say("title.slots"), 40, right=True),
        Column(say("title.silent"), 30, right=True),
        Column(say("title.started"), 20),
        Column(say("title.version"), 10),
    ]


def row(worker: WorkerState) -> tuple[object, ...]:
    """A worker as a line of a table."""
    queues = say("worker.all_queues") if worker.queues is None else ", ".join(worker.queues)
    slots, silent = f"{worker.running}/{worker.concurrency}", output.span(worker.silent_for)
    shown = state("lost" if lost(worker) else worker.state)
    return worker.id, shown, queues, slots, silent, output.distance(worker.started_at), worker.version
