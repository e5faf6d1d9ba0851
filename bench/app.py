"""The application that is measured: tasks that do nothing, and the process that runs them.

`python -m bench.app URL OPTIONS` is what a user would write: `jobs.worker(...).run()`. OPTIONS is JSON for the
worker, and says whether to end when the queue is empty.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, NamedTuple

from bench.core.children import as_child
from dibs import AsyncTask, Dibs, Task

QUEUE = "bench"
seen: dict[str, float] = {}
"""When the handler of each job of `note` began."""


class Application(NamedTuple):
    """The door, and its tasks."""

    jobs: Dibs
    noop: AsyncTask[[str], None]
    sync_noop: Task[[str], None]
    note: AsyncTask[[int], None]


def application(url: str) -> Application:
    """The tasks, for one database."""
    jobs = Dibs(url)

    @jobs.task(queue=QUEUE)
    async def noop(text: str) -> None:
        """Nothing."""

    @jobs.task(queue=QUEUE)
    def sync_noop(text: str) -> None:
        """Nothing, in a thread."""

    @jobs.task(queue=QUEUE)
    async def note(n: int) -> None:
        """Note the time."""
        seen[str(n)] = time.time()

    return Application(jobs, noop, sync_noop, note)


def main() -> None:
    """Be a child of a question: a worker until the queue is empty, or until SIGTERM."""
    logging.basicConfig(level=logging.WARNING)
    url, options = sys.argv[1], json.loads(sys.argv[2])
    until_empty: bool = options.pop("until_empty", False)
    jobs = application(url).jobs
    jobs.stats()  # the driver is imported and a connection is open, as in a program that is up

    def work() -> dict[str, Any]:
        jobs.worker([QUEUE], **options).run(until_empty=until_empty)
        return {"seen": seen}

    as_child(work)


if __name__ == "__main__":
    main()
