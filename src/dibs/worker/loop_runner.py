"""Runs `async def` handlers: one event loop in one thread, fed in batches."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from dibs.worker.attempt import CurrentJob, _current
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes
from dibs.worker.runner import Finish, Runner

_log = logging.getLogger("dibs.worker")
SLICE = 0.005
"""Seconds of handlers that never wait before other things on the loop get a turn."""


class LoopRunner(Runner):
    """A few carriers (asyncio tasks) take jobs from one line, one after another.

    A handler that never waits runs inside the carrier's own step: no task is made for it. One that does wait lets
    the next carrier go on. Each carrier is a real task, so timeouts, task groups and cancellation work as anywhere.
    """

    def __init__(self, slots: int, hold: Hold, outcomes: Outcomes, finish: Finish) -> None:
        super().__init__(slots, hold, outcomes, finish)
        self._idle: list[asyncio.Future[None]] = []
        self._carriers: set[asyncio.Task[None]] = set()
        self._called = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._starting = threading.Lock()
        self._stopping = False

    def _call(self) -> None:
        if self._thread is None:
            self._start()
        self._tell(self._call_carrier)

    def stop(self, timeout: float) -> bool:
        """Cancel what still runs, and end the thread. Answers whether it ended in time."""
        if self._thread is None:
            return True
        self._stopping = True
        self._tell(self._stop_carriers)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _start(self) -> None:
        with self._starting:  # whoever gives a slot back calls too: one loop is enough
            if self._thread is None:
                thread = threading.Thread(target=self._run_loop, name="dibs-loop", daemon=True)
                thread.start()
                self._thread = thread
        self._ready.wait()

    def _run_loop(self) -> None:
        while not self._stopping:
            try:
                with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                    runner.run(self._live())
            except (SystemExit, KeyboardInterrupt) as error:
                _log.error("a task that a handler made ended the event loop with %r; a new loop is started", error)

    def _tell(self, what: Callable[[], None]) -> None:
        """Have something done in the loop's thread. A loop that has just ended is followed by one that looks itself."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(what)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._idle, self._carriers, self._called = [], set(), False
        self._ready.set()
        self._call_carrier()
        if not self._stopping:
            await self._ended
        for carrier in list(self._carriers):
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)

    def _stop_carriers(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _call_carrier(self) -> None:
        """Wake one carrier; it wakes the next when it takes a job. At most one is on its way at any time."""
        if self._called or not self._pending or not self._shared.free or self._stopping:
            return
        if self._idle:
            self._called = True
            self._idle.pop().set_result(None)
        elif len(self._carriers) < self._slots and self._loop is not None:
            self._called = True
            carrier = self._loop.create_task(self._carry())
            self._carriers.add(carrier)
            carrier.add_done_callback(self._retire)

    def _retire(self, carrier: asyncio.Task[None]) -> None:
        self._carriers.discard(carrier)
        self._called = False
        self._call_carrier()

    async def _carry(self) -> None:
        """Run jobs until the line is empty; wait; go on. Ends when a handler has left something behind in it."""
        carrier = asyncio.current_task()
        assert self._loop is not None
        assert carrier is not None
        turn_ends = time.monotonic() + SLICE
        self._called = False
        while not self._stopping:
            attempt = self._next()
            if attempt is None:
                await self._rest()
                turn_ends = time.monotonic() + SLICE
                continue
            self._call_carrier()
            try:
                clean = await self._run(attempt, carrier)
            finally:
                self._shared.give(self)
            if not clean:
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
        """Run one job. Answers whether context and task are as before, so that no handler meets another one's."""
        started = self.moved_at = time.monotonic()
        if self._given_up(attempt, started):
            return True
        _current.set(attempt)
        before = copy_context()
        definition = attempt._definition
        attempt._started = started
        attempt._stop = carrier.cancel
        self._running.add(attempt)
        try:
            value = await definition.signature.call(definition.function, attempt.job)
        except asyncio.CancelledError:
            if attempt._abort is None and self._stopping:
                raise
            if attempt._abort is not None:
                carrier.uncancel()
            itself = asyncio.CancelledError("the handler cancelled itself")
            self._end(attempt, self._outcomes.raised(attempt, itself))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises, SystemExit too, is its job's failure
            self._end(attempt, self._outcomes.raised(attempt, error))
        else:
            self._finish(attempt, self._outcomes.returned(attempt, value))  # also when it answers its cancellation so
        finally:
            self._running.discard(attempt)
            attempt._stop = None
        self._hold.pace.record(time.monotonic() - started)
        return not carrier.cancelling() and copy_context() == before

    def abort(self, attempt: CurrentJob) -> None:
        """Cancel a running handler."""
        self._tell(lambda: _stop_now(attempt))


def _stop_now(attempt: CurrentJob) -> None:
    if attempt._stop is not None:
        attempt._stop()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
