"""A worker inside an asyncio program, with async handlers. Jobs are kept in memory.

It prints:

    page 0, page 1, page 2
"""

import asyncio

from dibs import Dibs

jobs = Dibs("sqlite://")


@jobs.task
async def fetch(number: int) -> str:
    """Stands for a request: many such handlers wait at once."""
    await asyncio.sleep(0.01)
    return f"page {number}"


async def main() -> None:
    """The worker runs in threads of its own; this loop stays free for other things."""
    async with jobs.worker(concurrency=8):
        handles = [await fetch.aenqueue(number) for number in range(3)]
        pages = await asyncio.gather(*(handle.aresult(timeout="10s") for handle in handles))
    print(", ".join(pages))
    await jobs.aclose()


if __name__ == "__main__":
    asyncio.run(main())
