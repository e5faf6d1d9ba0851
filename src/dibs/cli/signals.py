"""Telling a person what Ctrl-C does: the first lets running jobs finish, the second ends at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dibs.cli import output
from dibs.messages import say
from dibs.worker.signals import signals_heard


@contextmanager
def signals_told(grace: str) -> Iterator[None]:
    """Tell of the first signal and of the second; who obeys them is decided elsewhere."""
    told = 0

    def tell(number: int) -> None:
        nonlocal told
        if number not in (signal.SIGINT, signal.SIGTERM) or told > 1:
            return
        told += 1
        gap = "\n" if sys.stderr.isatty() else ""  # a terminal has just shown ^C
        output.note(gap + (say("worker.finishes", grace=grace) if told == 1 else say("worker.ends_now")), "yellow")

    with signals_heard(tell):
        yield
