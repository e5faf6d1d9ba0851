"""Telling a person what Ctrl-C does: the first lets running jobs finish, the second ends at once."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dibs.cli import output
from dibs.messages import say


@contextmanager
def signals_told(grace: str) -> Iterator[None]:
    """Tell of the first signal and of the second; who obeys them is decided elsewhere.

    Python writes the number of each signal to the wakeup socket, whoever handles it.
    """
    heard, written = socket.socketpair()
    written.setblocking(False)
    teller = threading.Thread(target=_tell, args=(heard, grace), name="dibs-teller", daemon=True)
    teller.start()
    before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        written.close()
        teller.join()
        heard.close()


def _tell(heard: socket.socket, grace: str) -> None:
    told = 0
    while number := heard.recv(1):
        if number[0] not in (signal.SIGINT, signal.SIGTERM) or told > 1:
            continue
        told += 1
        gap = "\n" if sys.stderr.isatty() else ""  # a terminal has just shown ^C
        output.note(gap + (say("worker.finishes", grace=grace) if told == 1 else say("worker.ends_now")), "yellow")
