"""`dibs worker list`: who works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.cli import output
from dibs.cli.grammar import as_json, command, pass_target
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
        output.document({"workers": [worker._asdict() for worker in workers]})
        return
    output.table(titles(), [row(worker) for worker in workers])
    if not workers:
        output.note(say("worker.none"))
    versions = sorted({worker.version for worker in workers})
    if len(versions) > 1:
        output.warn("mixed-versions", versions=", ".join(versions))


def titles() -> list[str]:
    """The columns of `row`."""
    named = [say("title.worker"), say("title.status"), say("title.queues"), say("title.slots")]
    return [*named, say("title.silent"), say("title.started"), say("title.version")]


def row(worker: WorkerState) -> tuple[object, ...]:
    """A worker as a line of a table."""
    queues = say("worker.all_queues") if worker.queues is None else ", ".join(worker.queues)
    slots, silent = f"{worker.running}/{worker.concurrency}", output.span(worker.silent_for)
    return worker.id, worker.state, queues, slots, silent, output.distance(worker.started_at), worker.version
