"""Says now and then that this worker is alive, and what it does."""

from __future__ import annotations

import os
import socket
from importlib.metadata import version
from typing import TYPE_CHECKING

from dibs.model.json_text import encode
from dibs.store import roll
from dibs.store.roll import Presence
from dibs.task.registry import Registry
from dibs.worker.line import Line
from dibs.worker.service import Service

if TYPE_CHECKING:
    from dibs.worker.worker import Worker

EVERY = 5.0
"""Seconds between two beats. Whoever is silent for several is lost; what is told of a worker is no older than one."""


class RollCall(Service):
    """One row a worker, refreshed every few seconds and removed at the end."""

    name = "roll call"

    def __init__(self, line: Line, worker: Worker, tasks: Registry) -> None:
        super().__init__()
        self._line = line
        self._worker = worker
        self._tasks = tasks
        self._version = version("dibs")

    def tick(self) -> float:
        """Be present."""
        settings = self._worker.settings
        queues = None if settings.queues is None else encode(sorted(settings.queues)).decode()
        presence = Presence(
            self._worker.id,
            socket.gethostname(),
            os.getpid(),
            self._version,
            queues,
            settings.concurrency,
            sum(attempt._started > 0 and not attempt._settled for attempt in self._worker.hold.attempts()),
            "stopping" if self._worker.fetcher.stopping else "running",
        )
        self._line.call(lambda: roll.be_present(presence))
        return EVERY

    def closed(self) -> None:
        """Leave the roll."""
        try:
            self._line.call(lambda: roll.leave(self._worker.id))
        finally:
            self._line.close()
