"""The worker: its services, put together, started, and stopped in order."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dibs.store.access import Store
from dibs.store.claimer import Claimer
from dibs.task.registry import Registry
from dibs.worker import extras
from dibs.worker.attempt import CurrentJob
from dibs.worker.fetcher import Fetcher
from dibs.worker.guard import Guard
from dibs.worker.hold import Hold
from dibs.worker.keeper import Keeper
from dibs.worker.line import Line
from dibs.worker.loop_runner import LoopRunner
from dibs.worker.options import Settings, check
from dibs.worker.outcomes import Outcomes
from dibs.worker.process_runner import ProcessRunner
from dibs.worker.roll_call import RollCall
from dibs.worker.runner import Runner, Slots
from dibs.worker.service import Service
from dibs.worker.settler import Settler
from dibs.worker.signals import stopped_by_signals
from dibs.worker.sleeper import Sleeper
from dibs.worker.supervisor import stop_with_parent
from dibs.worker.thread_runner import ThreadRunner

_log = logging.getLogger("dibs.worker")
FLUSH = 3.0
"""Seconds at the end of the grace that are kept for handing jobs back; half of a shorter grace."""
LEAST = 1.0
"""Seconds an end may take at least."""


class Worker:
    """Runs jobs of some queues. `run()` blocks until it is told to stop; `with` runs it in the background.

    >>> from dibs import Dibs
    >>> jobs = Dibs("sqlite://")
    >>> @jobs.task
    ... async def greet(name: str) -> str:
    ...     return f"hello {name}"
    >>> handle = greet.enqueue("world")
    >>> jobs.worker(concurrency=4).run(until_empty=True)
    1
    >>> handle.result()
    'hello world'
    """

    def __init__(
        self,
        store: Store,
        tasks: Registry,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        prepare: Callable[[], None] = lambda: None,
        result_limit: int = 1_000_000,
        **options: Any,
    ) -> None:
        self.settings = check(queues, options)
        self.id = f"{self.settings.name or socket.gethostname()}:{os.getpid()}:{secrets.token_hex(2)}"
        self._store = store
        self._tasks = tasks
        self._prepare = prepare
        self._outcomes = Outcomes(result_limit)
        self._stop_asked = threading.Event()
        self._stopped = False
        self._hurry = threading.Event()
        self._assemble()

    def _assemble(self) -> None:
        settings, dialect = self.settings, self._store.dialect
        self.hold = Hold()
        slots, cpus = settings.concurrency, min(settings.concurrency, settings.processes_limit)
        self.settler = Settler(self._line(), dialect, self.hold, self._outcomes, self._more_coming)
        parts = (self.hold, self._outcomes, self.settler.add)
        self._runners: dict[str, Runner] = {
            "loop": LoopRunner(slots, *parts),
            "thread": ThreadRunner(slots, *parts),
            "process": ProcessRunner(cpus, *parts),
        }
        Slots(slots).share(self._runners.values())
        self.guard = Guard(self.hold, self._outcomes, self._runners, self.settler.add)
        self.keeper = Keeper(self._line(), dialect, self.hold, self.guard.lose)
        self.fetcher = self._fetcher(self._line(), settings)
        self._roll_call = RollCall(self._line(), self, self._tasks)
        self.services: list[Service] = [
            self.settler,
            self.guard,
            self.keeper,
            self.fetcher,
            self._roll_call,
            *extras.services(extras.Host(self._store, self.id, self.fetcher.ring, self._hears())),
        ]
        self.fetcher.put_back = self.settler.add
        self.settler.on_settled = self.fetcher.nudge

    def _fetcher(self, line: Line, settings: Settings) -> Fetcher:
        dialect = self._store.dialect
        claimer = Claimer(line.call, dialect, self.id, settings.queues, None, settings.lease)
        rings = dialect.can.ring_sleepers
        sleeper = Sleeper(line, self.id, settings, self._hears(), rings)
        return Fetcher(line, claimer, sleeper, self._tasks, self.hold, self._outcomes, self._runners, settings)

    def _more_coming(self) -> bool:
        return any(runner.waiting > 0 for runner in self._runners.values())

    def _hears(self) -> bool:
        return self.settings.wakeups == "auto" and self._store.database.audible

    def _line(self) -> Line:
        return Line(self._store)

    def start(self) -> None:
        """Start in the background."""
        self._prepare()
        self._roll_call.tick()
        _log.info("worker %s starts on %s", self.id, self._store.database.shown_url)
        self._store.listeners.append(self.fetcher.ring)
        for service in self.services:
            service.start()

    def run(self, until_empty: bool = False) -> int:
        """Run until `stop()` or a signal (SIGTERM, SIGINT; a second one forces). Answers how many attempts were run.

        `until_empty` ends when nothing is due any more; what is scheduled for later is not waited for.
        """
        if until_empty:
            self.fetcher.when_empty = self._stop_asked.set
        stop_with_parent(self.stop)
        with stopped_by_signals(self.stop, self._force):
            self.start()
            try:
                self._stop_asked.wait()
            finally:
                self.shut_down()
        return self.settler.outcomes.ran

    def stop(self) -> None:
        """Ask `run` to end: no more claims, then the grace."""
        self._stop_asked.set()

    def _force(self) -> None:
        self._hurry.set()

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    async def __aenter__(self) -> Worker:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.shut_down)

    def shut_down(self) -> None:
        """Stop claiming, let running handlers finish within the grace, hand everything else back, end."""
        if self._stopped:
            return
        self._stopped = True
        end = time.monotonic() + max(self.settings.grace, LEAST)
        flush = min(FLUSH, max(self.settings.grace, LEAST) / 2)
        self.fetcher.stop()
        self.fetcher.join(flush)
        self._hand_back([attempt for runner in self._runners.values() for attempt in runner.take_back()])
        self._wait_for_handlers(end - flush)
        self._cut_off(flush / 3)
        drained = self.settler.drain(min(end, time.monotonic() + flush))
        self._end_services(drained, end)

    def _hand_back(self, attempts: list[CurrentJob]) -> None:
        for attempt in attempts:
            self.settler.add(attempt, self._outcomes.returned_unrun(attempt))

    def _wait_for_handlers(self, end: float) -> None:
        while time.monotonic() < end and not self._hurry.is_set() and self._unfinished():
            self._hurry.wait(0.01)

    def _unfinished(self) -> list[CurrentJob]:
        return [attempt for attempt in self.hold.attempts() if not attempt._settled]

    def _cut_off(self, patience: float) -> None:
        """The grace is over: stop what runs. The attempt does not count, for it is not the job's fault."""
        for attempt in self._unfinished():
            _log.warning("job %s did not finish within the grace and is handed back", attempt.id)
            self.guard.stop_handler(attempt, "shutdown")
        end = time.monotonic() + patience
        while self._unfinished() and time.monotonic() < end:
            time.sleep(0.005)
        for attempt in self._unfinished():
            # A thread that does not listen: its job starts elsewhere only after this process has had time to exit.
            self.settler.add(attempt, self._outcomes.cut_off(attempt, delay=5_000_000))

    def _end_services(self, drained: bool, end: float) -> None:
        if self.fetcher.ring in self._store.listeners:
            self._store.listeners.remove(self.fetcher.ring)
        for service in self.services:
            service.stop()
        for runner in self._runners.values():
            runner.stop(0.5)
        # A service that waits for a database that does not answer is left behind: its thread ends with the process.
        end = max(end, time.monotonic() + 0.5)
        for service in self.services:
            service.join(max(0.0, end - time.monotonic()))
        left = len(self.hold)
        if drained and not left:
            _log.info("worker %s stopped: %s", self.id, self.settler.outcomes.told())
        else:
            _log.warning("worker %s stopped with %d jobs unsettled; their leases will expire", self.id, left)

    def health(self) -> dict[str, float]:
        """Seconds since each service last succeeded."""
        return {service.name: round(service.silent_for, 3) for service in self.services}
