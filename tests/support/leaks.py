"""Checks that a test left nothing behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until


@contextmanager
def no_threads_left() -> Iterator[None]:
    """Fail if a thread that was started in the block outlives it."""
    before = set(threading.enumerate())
    yield
    wait_until(lambda: not _newer(before), "the end of every thread that the test started")


def _newer(before: set[threading.Thread]) -> list[threading.Thread]:
    # The interpreter keeps the threads of `asyncio.to_thread` until its loop is closed: those are the test's to close.
    return [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()]


def open_files_in(folder: Path) -> list[str]:
    """Files of a folder that this process holds open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue  # the descriptor of this very listing
        if target.startswith(f"{folder}{os.sep}"):
            found.append(target)
    return found
