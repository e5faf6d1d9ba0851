"""Dequeue, heartbeat, ack and nack in a loop of one's own, without dibs' worker. Jobs are kept in memory.

It prints:

    4 / 2 = 2.0
    1 / 0: ZeroDivisionError, runs again as attempt 2
    9 / 3 = 3.0
    completed: 2, retrying: 1
"""

from dibs import Dibs, Job

jobs = Dibs("sqlite://")


def divide(job: Job) -> float:
    """The work itself. Long work would call jobs.heartbeat(job) now and then, and stop when it answers False."""
    assert jobs.heartbeat(job, extend="30s")
    return job.payload["a"] / job.payload["b"]


def work_off() -> None:
    """Take up to ten jobs at a time until none is due."""
    while batch := jobs.dequeue(tasks=["divide"], limit=10, lease="30s", worker="example"):
        for job in batch:
            shown = f"{job.payload['a']} / {job.payload['b']}"
            try:
                result = divide(job)
            except ZeroDivisionError as error:
                jobs.nack(job, error, retry_in="1h")
                print(f"{shown}: {type(error).__name__}, runs again as attempt {job.attempts + 1}")
            else:
                jobs.ack(job, result)
                print(f"{shown} = {result}")


def main() -> None:
    """Three jobs, one of which fails."""
    for a, b in ((4, 2), (1, 0), (9, 3)):
        jobs.enqueue("divide", {"a": a, "b": b})
    work_off()
    print(f"completed: {jobs.count(status='completed')}, retrying: {jobs.count(status='retrying')}")
    jobs.close()


if __name__ == "__main__":
    main()
