"""The little application that `dibs demo` runs: a shop's background jobs."""

from __future__ import annotations

import asyncio
import os
import time

from dibs import Backoff, Dibs, current_job

jobs = Dibs(os.environ.get("DIBS_DEMO_URL", "sqlite://"))


class GatewayDown(Exception):
    """What a payment provider does on a bad day."""


@jobs.task(queue="mail")
async def send_receipt(order: int) -> None:
    """Waits as a mail server would let us wait; hundreds of these share one thread."""
    await asyncio.sleep(0.02 + order % 7 * 0.01)


@jobs.task(queue="images")
def resize_image(image: int, width: int = 800) -> str:
    """Blocks a thread, as image libraries do."""
    time.sleep(0.03 + image % 5 * 0.02)
    return f"image-{image}-{width}.webp"


@jobs.task(queue="reports", run_in="process")
def monthly_report(month: int) -> int:
    """Keeps a CPU busy, in a process of its own."""
    return sum(n * n % 7 for n in range(300_000 + month))


@jobs.task(queue="payments", backoff=Backoff.fixed("1s"))
def charge_card(order: int) -> str:
    """Fails at first."""
    if current_job().attempts == 1:
        raise GatewayDown("503 from the payment gateway")
    return f"charged order {order}"


@jobs.task(queue="imports", backoff=Backoff.fixed("500ms"))
def import_feed(rows: int) -> str:
    """Takes a few seconds: long enough for its worker to be killed."""
    for _ in range(30):
        time.sleep(0.1)
    return f"{rows} rows imported by attempt {current_job().attempts}"


@jobs.task(queue="burst")
async def count(n: int) -> None:
    """Does nothing, very often."""
