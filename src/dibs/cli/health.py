"""`dibs health`: is the database there, are its tables right, does somebody work? Imports nobody's code."""

from __future__ import annotations

import time

from dibs.cli import output
from dibs.cli.grammar import as_json, command, option, pass_target
from dibs.cli.names import complete_queue, known_queue
from dibs.cli.problems import FAILED, OK
from dibs.cli.target import Target
from dibs.messages import say


@command("health", examples=("dibs health", "dibs health --queue mail --json"), app=False)
@option("--queue", "queues", key="option.health_queue", metavar="NAME", multiple=True, shell_complete=complete_queue)
@as_json
@pass_target
def health(target: Target, queues: tuple[str, ...], as_json: bool) -> int:
    """For probes: the exit code tells."""
    from dibs.cli.serving import lost, serving

    door = target.door(imports=False)
    started = time.monotonic()
    door.check_schema()
    latency = time.monotonic() - started
    unserved = [known_queue(door, name) for name in queues if not serving(door, name)]
    if as_json:
        output.document({"ok": not unserved, "url": door.url, "latency": round(latency, 4), "unserved": unserved})
    for worker in filter(lost, door.workers()):
        output.warn("worker-lost", worker=worker.id, silent=output.span(worker.silent_for))
    for name in unserved:
        output.warn("no-worker", queue=name)
    if unserved:
        return FAILED
    output.done(say("health.ok", url=door.url, latency=output.span(latency)))
    return OK
