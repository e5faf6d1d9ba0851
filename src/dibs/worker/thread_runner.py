"""Runs `def` handlers in threads."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from contextvars import Context, copy_context

from dibs.worker.attempt import CurrentJob, _current
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes
from dibs.worker.runner import Finish, Runner


class Pool(Runner):
    """Threads that take jobs from one line, one at a time: a slow job holds up its own thread only.

    One thread is woken for a batch; each that takes a job wakes the next if there is more. So a batch of jobs that
    take microseconds is run by one or two threads, and a batch of slow ones by all.
    """

    kind = "handler"

    def __init__(self, slots: int, hold: Hold, outcomes: Outcomes, finish: Finish) -> None:
        super().__init__(slots, hold, outcomes, finish)
        self._more = threading.Condition()
        self._idle = 0
        self._called = False
        self._threads: list[threading.Thread] = []
        self._stopping = False

    def stop(self, timeout: float) -> bool:
        """End the threads that are idle. Answers whether all ended in time: a running handler cannot be stopped."""
        with self._more:
            self._stopping = True
            self._more.notify_all()
        end = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _call(self) -> None:
        if self._called:
            return
        with self._more:
            if self._called or not self._pending or not self._shared.free or self._stopping:
                return
            if self._idle:
                self._called = True
                self._more.notify()
            elif len(self._threads) < self._slots:
                self._called = True
                name = f"dibs-{self.kind}-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run(self) -> None:
        self._called = False
        while True:
            attempt = self._next()
            if attempt is None:
                if not self._rest():
                    return
                continue
            if self._pending:
                self._call()
            self._running.add(attempt)
            try:
                self._attend(attempt)
            finally:
                self._running.discard(attempt)
                self._shared.give(self)

    @abstractmethod
    def _attend(self, attempt: CurrentJob) -> None:
        """Run one job to its outcome."""

    def _rest(self) -> bool:
        """Wait for work. Answers False when there will be no more."""
        with self._more:
            if self._stopping:
                return False
            if self._pending and self._shared.free:
                return True
            self._idle += 1
            self._more.wait()
            self._idle -= 1
            self._called = False
            return not self._stopping


class ThreadRunner(Pool):
    """Runs handlers in the pool's threads, each in a context of its own."""

    def __init__(self, slots: int, hold: Hold, outcomes: Outcomes, finish: Finish) -> None:
        super().__init__(slots, hold, outcomes, finish)
        self._blank: Context = copy_context()

    def _attend(self, attempt: CurrentJob) -> None:
        self.moved_at = now = time.monotonic()
        if not self._given_up(attempt, now):
            attempt._started = now
            self._blank.copy().run(self._run_handler, attempt)

    def _run_handler(self, attempt: CurrentJob) -> None:
        _current.set(attempt)
        definition, started = attempt._definition, attempt._started
        try:
            value = definition.signature.call(definition.function, attempt.job)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises, SystemExit too, is its job's failure
            self._end(attempt, self._outcomes.raised(attempt, error))
        else:
            self._end(attempt, self._outcomes.returned(attempt, value))
        self._hold.pace.record(time.monotonic() - started)

    def abort(self, attempt: CurrentJob) -> None:
        """A thread cannot be stopped: `job.cancelled` is true now, and the rest is up to the handler."""
