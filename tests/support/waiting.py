"""Bounded waiting for what sends no signal: a lock that somebody waits for, a connection that goes away."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

PATIENCE = 10.0


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Look every few milliseconds; fail the test, naming `what`, when the time is over."""
    deadline, pause = time.monotonic() + seconds, Event()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} seconds in vain for {what}")
        pause.wait(0.005)
