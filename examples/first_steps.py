"""A task, a job, a worker in the background, a result. Makes first_steps.db in this folder.

It prints:

    ready
    hello Ada
    completed
"""

from dibs import Dibs

jobs = Dibs("sqlite:///first_steps.db")


@jobs.task
def greet(name: str) -> str:
    """Say hello."""
    return f"hello {name}"


def main() -> None:
    """Enqueue a job and let a worker of this process run it."""
    handle = greet.enqueue("Ada")
    print(handle.status())
    with jobs.worker(concurrency=2):
        print(handle.result(timeout="10s"))
    print(handle.status())
    jobs.close()


if __name__ == "__main__":
    main()
