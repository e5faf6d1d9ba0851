"""`dibs worker list`: who works."""

from __future__ import annotations

from dibs.cli import output
from dibs.cli.grammar import as_json, command, pass_target
from dibs.cli.target import Target
from dibs.messages import say


@command("worker.list", examples=("dibs worker list", "dibs worker list --json"))
@as_json
@pass_target
def list_workers(target: Target, as_json: bool) -> None:
    """The workers that have been heard of lately."""
    workers = target.door().workers()
    if as_json:
        output.document({"workers": [worker._asdict() for worker in workers]})
        return
    titles = [say("title.worker"), say("title.status"), say("title.queues"), say("title.slots")]
    titles += [say("title.silent"), say("title.started"), say("title.version")]
    rows = [
        (
            worker.id,
            worker.state,
            ", ".join(worker.queues) if worker.queues is not None else say("worker.all_queues"),
            f"{worker.running}/{worker.concurrency}",
            output.span(worker.silent_for),
            output.distance(worker.started_at),
            worker.version,
        )
        for worker in workers
    ]
    output.table(titles, rows)
    if not workers:
        output.note(say("worker.none"))
    versions = sorted({worker.version for worker in workers})
    if len(versions) > 1:
        output.warn("mixed-versions", versions=", ".join(versions))
