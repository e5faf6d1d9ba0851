"""Jobs in every status."""

from __future__ import annotations

from collections.abc import Callable

from dibs import Dibs, Job


def one_of_each(jobs: Dibs, queue: str = "default") -> dict[str, str]:
    """A job in every status that this part of dibs knows, by its status."""
    made: dict[str, str] = {}

    def make(status: str, act: Callable[[Job], object] = lambda job: None) -> None:
        made[status] = jobs.enqueue("mail", queue=queue, max_attempts=1 if status == "dead" else 5).id
        act(jobs.dequeue()[0])

    make("claimed")
    make("running", jobs.heartbeat)
    make("retrying", lambda job: jobs.nack(job, "failed", retry_in="1h"))
    make("dead", lambda job: jobs.nack(job, "failed"))
    make("completed", jobs.ack)
    for status, end in (("cancelled", jobs.cancel), ("discarded", jobs.discard)):
        made[status] = jobs.enqueue("mail", queue=queue).id
        assert end(made[status]) == 1
    made["scheduled"] = jobs.enqueue("mail", queue=queue, delay="1h").id
    made["ready"] = jobs.enqueue("mail", queue=queue).id
    return made
