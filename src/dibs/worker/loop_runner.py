"""Runs `async def` handlers: one event loop in one thread, fed in batches."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import Any

from dibs.worker.attempt import Abort, CurrentJob, _current
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes, Settlement

_log = logging.getLogger("dibs.worker")
SLICE = 0.005
"""Seconds of handlers that never wait before other things on the loop get a turn."""

Finish = Callable[[CurrentJob, Settlement], None]


class LoopRunner:
    """A few carriers (asyncio tasks) take jobs from one line, one after another.

    A handler that never waits runs inside the carrier's own step: no task is made for it. One that does wait lets
    the next carrier go on. Each carrier is a real task, so timeouts, task groups and cancellation work as anywhere.
    """

    def __init__(self, slots: int, hold: Hold, outcomes: Outcomes, finish: Finish) -> None:
        self._slots = slots
        self._hold = hold
        self._outcomes = outcomes
        self._finish = finish
        self._pending: deque[CurrentJob] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._carriers: set[asyncio.Task[None]] = set()
        self._called = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()

    @property
    def waiting(self) -> int:
        """Jobs that have not been started."""
        return len(self._pending)

    def submit(self, attempts: Iterable[CurrentJob]) -> None:
        """Hand over a batch. The thread is started with the first."""
        if self._thread is None:
            self._start()
        self._pending.extend(attempts)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._call_carrier)

    def take_back(self) -> list[CurrentJob]:
        """Remove and return what has not been started."""
        taken = []
        while True:
            try:
                taken.append(self._pending.popleft())
            except IndexError:
                return taken

    def stop(self, timeout: float) -> bool:
        """Cancel what still runs, and end the thread. Answers whether it ended in time."""
        if self._loop is None or self._thread is None:
            return True
        self._loop.call_soon_threadsafe(self._stop_carriers)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run_loop, name="dibs-loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._ready.set()
        await self._ended
        for carrier in list(self._carriers):
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)

    def _stop_carriers(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _call_carrier(self) -> None:
        """Wake one carrier; it wakes the next when it takes a job. At most one is on its way at any time."""
        if self._called or not self._pending:
            return
        if self._idle:
            self._called = True
            self._idle.pop().set_result(None)
        elif len(self._carriers) < self._slots and self._loop is not None:
            self._called = True
            carrier = self._loop.create_task(self._carry())
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)

    async def _carry(self) -> None:
        """Run jobs until the line is empty; wait; go on. Ends when a handler has left something in its context."""
        carrier = asyncio.current_task()
        assert self._loop is not None
        assert carrier is not None
        turn_ends = time.monotonic() + SLICE
        self._called = False
        while True:
            if not self._pending:
                await self._rest()
                turn_ends = time.monotonic() + SLICE
                continue
            try:
                attempt = self._pending.popleft()
            except IndexError:
                continue
            self._call_carrier()
            clean = await self._run(attempt, carrier)
            if not clean:
                self._called = False
                self._loop.call_soon(self._call_carrier)
                return
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + SLICE

    async def _rest(self) -> None:
        bed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(bed)
        await bed
        self._called = False

    async def _run(self, attempt: CurrentJob, carrier: asyncio.Task[Any]) -> bool:
        """Run one job. Answers whether the context is as before, so that no handler sees what another one set."""
        _current.set(attempt)
        before = copy_context()
        definition = attempt._definition
        started = attempt._started = time.monotonic()
        attempt._stop = carrier.cancel
        try:
            value = await definition.signature.call(definition.function, attempt.job)
        except asyncio.CancelledError:
            if attempt._abort is None and self._ended.done():
                raise
            self._aborted(attempt, carrier)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises, SystemExit too, is its job's failure
            self._finish(attempt, self._outcomes.raised(attempt, error))
        else:
            self._finish(attempt, self._outcomes.returned(attempt, value))
        attempt._stop = None
        self._hold.record(time.monotonic() - started)
        return copy_context() == before

    def _aborted(self, attempt: CurrentJob, carrier: asyncio.Task[Any]) -> None:
        """The handler was cancelled: by the worker for a reason, or by itself."""
        if attempt._abort is not None:
            carrier.uncancel()
        settlement = aborted(self._outcomes, attempt, asyncio.CancelledError("the handler cancelled itself"))
        if settlement is not None:
            self._finish(attempt, settlement)

    def abort(self, attempt: CurrentJob) -> None:
        """Cancel a running handler. `attempt._abort` says why."""
        if self._loop is not None and attempt._stop is not None:
            self._loop.call_soon_threadsafe(_stop_now, attempt)


def _stop_now(attempt: CurrentJob) -> None:
    if attempt._stop is not None:
        attempt._stop()


def aborted(outcomes: Outcomes, attempt: CurrentJob, error: BaseException) -> Settlement | None:
    """What becomes of a job whose handler was stopped. None if it is not this worker's to decide any more."""
    reason: Abort | None = attempt._abort
    if reason == "lost":
        return None
    if reason == "timeout":
        return outcomes.timed_out(attempt)
    if reason == "shutdown":
        return outcomes.returned_unrun(attempt)
    return outcomes.raised(attempt, error)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
