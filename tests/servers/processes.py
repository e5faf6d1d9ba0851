"""What Linux' /proc tells about a server's processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

_TICK = os.sysconf("SC_CLK_TCK")


def processes_in(folder: Path) -> list[int]:
    """Every process that works in `folder`. All of a PostgreSQL server's do, also those whose postmaster has
    gone and whose parent is therefore no longer it; a zombie no longer works anywhere and is left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") == str(folder):
                    found.append(int(entry.name))
            except OSError:
                continue  # gone in the meantime, a zombie, or not ours to look at
    return found


@dataclass(frozen=True)
class _Times:
    """One process's parent, its own clock ticks, and those of the children that it has reaped."""

    parent: int
    own: int
    reaped: int


def cpu_seconds(parent: int) -> float:
    """User and system time of `parent`, of its children, and of all those already reaped; each to 10 ms.

    Children are found by their parent and not by `processes_in`: one that has ended and is not reaped yet
    works nowhere, and its time would be missing. One reaped while we count is counted twice: count again.
    """
    while True:
        before = _times(parent)
        everybody = [_times(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        children = sum(times.own + times.reaped for times in everybody if times.parent == parent)
        if _times(parent).reaped == before.reaped:
            return (before.own + before.reaped + children) / _TICK


def _times(pid: int) -> _Times:
    """Nothing at all for a process that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _Times(0, 0, 0)
    user, system, children_user, children_system = (int(field) for field in fields[11:15])
    return _Times(int(fields[1]), user + system, children_user + children_system)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Look every few milliseconds; False when the time is over. For what sends no signal when it happens."""
    deadline, pause = time.monotonic() + seconds, Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.01)
    return True
