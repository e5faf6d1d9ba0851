"""How many more jobs this worker may take: in all, of each queue, and of those that need a process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.options import Settings
from dibs.worker.runner import Runner


class Room:
    """Never more than can run now, and a tenth of a second's work ahead: others may have free hands."""

    def __init__(self, hold: Hold, runners: Mapping[str, Runner], settings: Settings) -> None:
        self._hold = hold
        self._runners = runners
        self._settings = settings
        self._heavy: dict[str, bool] = {}
        """Queues whose last jobs needed processes: whether all of them did."""

    def total(self) -> int:
        """How many jobs to claim at most."""
        slots = self._settings.concurrency - sum(runner.stuck for runner in self._runners.values())
        if slots <= 0:
            return 0
        ahead = self._hold.pace.ahead(time.monotonic(), slots, self._hold.attempts())
        room = slots + ahead - len(self._hold)
        # A worker whose buffer is nearly full waits for a batch worth of room: a claim costs the same for one job.
        return room if room >= min(slots, 1 + ahead // 4) else 0

    def of_queues(self) -> dict[str, int]:
        """How many of certain queues: those with a cap, and those whose jobs wait for a process."""
        caps = self._settings.caps
        if not caps and not self._heavy:
            return {}
        held = self._hold.by_queue()
        rooms = {queue: cap - held[queue] for queue, cap in caps.items()}
        free = self._free_processes() if self._heavy else 0
        for queue, entirely in self._heavy.items():
            if entirely or free <= 0:
                rooms[queue] = min(rooms.get(queue, free), free)
        return rooms

    def surplus(self, attempts: Sequence[CurrentJob]) -> list[CurrentJob]:
        """Those of a claimed batch that no process is free for; the queues they came from are watched from now on."""
        heavy = [attempt for attempt in attempts if attempt._definition.run_in == "process"]
        if not heavy and not self._heavy:
            return []
        queues = {attempt.job.queue for attempt in heavy}
        light = {attempt.job.queue for attempt in attempts if attempt._definition.run_in != "process"}
        self._heavy = {queue: queue not in light for queue in queues} | {
            queue: entirely for queue, entirely in self._heavy.items() if queue not in queues | light
        }
        free = self._free_processes()
        return heavy[free:] if free < 0 else []

    def _free_processes(self) -> int:
        """How many more jobs may be held for processes; below zero, how many too many are held."""
        processes = min(self._settings.concurrency, self._settings.processes_limit)
        held = [attempt for attempt in self._hold.attempts() if attempt._definition.run_in == "process"]
        return processes + self._hold.pace_of_processes.ahead(time.monotonic(), processes, held) - len(held)
