"""The application that is hurt: tasks as a user would write them, which also say in the journal what they do."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from typing import Any

from chaos.journal import Journal
from dibs import Dibs, Job, Snooze, current_job

QUEUE = "chaos"
POISONS = ("exits", "faults")
"""Tasks that end their process."""
STEP = 0.01
HEARD = {
    "was taken from this worker before its outcome could be stored": "stale",
    "works again after": "works again",
    "is lost; its handler is being stopped": "lease lost",
}
"""What the worker logs, and the words under which it stands in the journal."""


class Application:
    """One `Dibs` with its tasks, and the journal of this process."""

    def __init__(self, url: str, journal: Journal) -> None:
        self.jobs = Dibs(url)
        self.journal = journal
        tasks = (self.nap, self.steps, self.threaded, self.flaky, self.later, self.exits, self.faults)
        self.jobs.register({task.__name__: task for task in tasks}, queue=QUEUE)

    async def nap(self, n: int, ms: int) -> dict[str, int]:
        """Wait once: a process that was stopped meanwhile finds the time over when it goes on."""
        self._start(n)
        try:
            await asyncio.sleep(ms / 1000)
        except asyncio.CancelledError:
            self._lost(n)
            raise
        return self._end(n)

    async def steps(self, n: int, ms: int) -> dict[str, int]:
        """Wait in small steps: time during which the process was stopped does not count."""
        self._start(n)
        try:
            for _ in range(max(1, round(ms / 1000 / STEP))):
                await asyncio.sleep(STEP)
        except asyncio.CancelledError:
            self._lost(n)
            raise
        return self._end(n)

    def threaded(self, n: int, ms: int) -> dict[str, int] | None:
        """The same in a thread, which asks whether it should stop."""
        self._start(n)
        for _ in range(max(1, round(ms / 1000 / STEP))):
            time.sleep(STEP)
            if current_job().cancelled:
                self._lost(n)
                return None
        return self._end(n)

    async def flaky(self, n: int, ms: int) -> dict[str, int]:
        """Fail at the first attempt."""
        self._start(n)
        await asyncio.sleep(ms / 1000)
        if current_job().attempts == 1:
            self._end(n, "raised")
            raise ValueError(f"job {n} fails at first")
        return self._end(n)

    async def later(self, n: int, ms: int) -> dict[str, int]:
        """Ask at the first claim to be run later."""
        self._start(n)
        if current_job().job.token == 1:
            self._end(n, "snoozed")
            raise Snooze(ms / 1000)
        return self._end(n)

    def exits(self, n: int) -> None:
        """End the whole process, in a thread."""
        self._start(n)
        self.journal.write("exit")
        os._exit(9)

    async def faults(self, n: int) -> None:
        """End the whole process as a fault of memory would, on the event loop: in this thread, before it goes on."""
        self._start(n)
        self.journal.write("exit")
        signal.raise_signal(signal.SIGSEGV)

    def _start(self, n: int) -> None:
        job = current_job().job
        self.journal.write("start", n=n, job=job.id, token=job.token, attempt=job.attempts)

    def _end(self, n: int, how: str = "returned") -> dict[str, int]:
        """The effect, then the end; the result names the claim it was made for."""
        job = current_job().job
        self.journal.write("effect", n=n, job=job.id, token=job.token)
        self.journal.write("end", n=n, job=job.id, token=job.token, how=how)
        return {"token": job.token}

    def _lost(self, n: int) -> None:
        job = current_job().job
        self.journal.write("lost", n=n, job=job.id, token=job.token)


class Ear(logging.Handler):
    """Writes what the worker says of leases and connections into the journal."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.INFO)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """One line of the log."""
        for words, name in HEARD.items():
            if words in record.msg:
                told = {"job": record.args[0]} if name != "works again" and isinstance(record.args, tuple) else {}
                self._journal.write("log", what=name, **told)


def listen(journal: Journal) -> None:
    """Hear the worker's log."""
    log = logging.getLogger("dibs.worker")
    log.setLevel(logging.INFO)
    log.addHandler(Ear(journal))


def ids(job: Job) -> dict[str, Any]:
    """What identifies a claim in the journal."""
    return {"n": job.payload["n"], "job": job.id, "token": job.token}
