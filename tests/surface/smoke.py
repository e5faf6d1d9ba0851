"""The smoke test of a house with a piece missing: `SMOKE_URL=sqlite:// python -m tests.surface.smoke dibs.worker.bell`.

The modules named are hidden before dibs is imported. One job is enqueued and run: by a worker if there is one, else
by a loop of one's own.
"""

from __future__ import annotations

import os
import sys


def main(hidden: list[str]) -> None:
    """Hide, import, run one job, print its result."""
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]
    from dibs import Dibs

    jobs = Dibs(os.environ["SMOKE_URL"])

    @jobs.task
    def double(number: int) -> int:
        return 2 * number

    handle = double.enqueue(21)
    if "dibs.worker" in hidden:
        [job] = jobs.dequeue(wait="5s")
        jobs.ack(job, double(job.payload["number"]))
    else:
        jobs.worker().run(until_empty=True)
    print(handle.result(timeout=10))
    jobs.close()


if __name__ == "__main__":
    main(sys.argv[1:])
