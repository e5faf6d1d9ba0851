"""Several worker processes under one parent: each uses one core; one that ends by itself is started again."""

from __future__ import annotations

import logging
import math
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dibs.worker.signals import stopped_by_signals

_log = logging.getLogger("dibs.worker")
LEASH = "DIBS_LEASH"
"""Environment variable with the number of a pipe that stays open as long as the supervisor lives."""
TICK = 0.1
LONGEST_PAUSE = 30.0
HEALTHY = 60.0
"""Seconds a process must have lived for its earlier deaths to be forgotten."""
MARGIN = 5.0
"""Seconds a process may take beyond its grace, or after a second signal; then it is killed. Services and connections
end in two; only outcomes that no database takes are waited for longer, and killing loses no more than they are."""
ENDED_WELL = (0, -signal.SIGTERM)
"""Codes of processes that are over: one that is told to stop while it still starts ends by the signal itself."""


@dataclass(slots=True)
class Seat:
    """One of the processes, and when the next one may take its place."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    started_at: float = 0.0
    not_before: float = 0.0
    told: int = 0
    killed: bool = False
    done: bool = False


class Supervisor:
    """Runs `command` in `count` processes. One that ends by itself is replaced, after a pause that grows each time.

    Only with `until_empty` may one end well. Told to stop, they have `grace` seconds.
    """

    def __init__(self, command: Sequence[str], count: int, *, grace: float, until_empty: bool = False) -> None:
        self._command = list(command)
        self._seats = [Seat(number) for number in range(1, count + 1)]
        self._grace = grace
        self._until_empty = until_empty
        self._asked = 0
        self._end_by = math.inf
        self._news = threading.Event()
        self._leash, self._held_end = os.pipe()

    def run(self) -> int:
        """Supervise until all have ended well, or until told to stop. Answers 0, or 1 if one had to be killed."""
        with stopped_by_signals(self._ask, self._ask):
            while not self._over():
                for seat in self._seats:
                    self._look_after(seat)
                self._news.wait(TICK)
                self._news.clear()
            codes = [seat.process.wait() for seat in self._seats if seat.process is not None]
        os.close(self._leash)
        os.close(self._held_end)
        return 0 if all(code in ENDED_WELL for code in codes) else 1

    def health(self) -> dict[str, float]:
        """For each process: zero while it lives or has ended well, else the seconds since it was last started."""
        now = time.monotonic()
        return {f"process {seat.number}": 0.0 if _well(seat) else now - seat.started_at for seat in self._seats}

    def _ask(self) -> None:
        """Somebody wants this to stop: passed on by the loop that also starts processes, so that none is missed."""
        allowed = MARGIN if self._asked else self._grace + MARGIN
        self._end_by = min(self._end_by, time.monotonic() + allowed)
        self._asked += 1
        self._news.set()

    def _over(self) -> bool:
        if self._asked:
            return all(seat.process is None or seat.process.poll() is not None for seat in self._seats)
        return all(seat.done for seat in self._seats)

    def _look_after(self, seat: Seat) -> None:
        now = time.monotonic()
        if self._asked:
            self._pass_on(seat, now)
            return
        if seat.process is None:
            if now >= seat.not_before and not seat.done:
                self._start(seat, now)
            return
        code = seat.process.poll()
        if code == 0 and self._until_empty:
            seat.done = True
        elif code is not None:
            self._make_room(seat, code, now)

    def _make_room(self, seat: Seat, code: int, now: float) -> None:
        """A process has ended that nobody here told to, be it by an error or by somebody's signal."""
        seat.deaths = 1 if now - seat.started_at > HEALTHY else seat.deaths + 1
        pause = min(LONGEST_PAUSE, 0.25 * 2**seat.deaths) * random.uniform(0.8, 1.2)
        how = f"with code {code}" if code else "without an error, and was not told to by this supervisor"
        _log.warning("worker process %d ended %s; the next starts in %.1f s", seat.number, how, pause)
        seat.process, seat.not_before = None, now + pause

    def _pass_on(self, seat: Seat, now: float) -> None:
        """Tell a process as often as we were told: the second time forces, here as there. A deaf one is killed."""
        if seat.process is None or seat.process.poll() is not None:
            return
        while seat.told < self._asked:
            seat.process.terminate()
            seat.told += 1
        if now >= self._end_by and not seat.killed:
            _log.error("worker process %d did not end in time and is killed; its leases will expire", seat.number)
            seat.process.kill()
            seat.killed = True

    def _start(self, seat: Seat, now: float) -> None:
        environment = {**os.environ, LEASH: str(self._leash)}
        # A group of its own: a Ctrl-C in the terminal reaches the parent alone, and is passed on once.
        seat.process = subprocess.Popen(self._command, env=environment, pass_fds=(self._leash,), process_group=0)
        seat.started_at = now


def _well(seat: Seat) -> bool:
    return seat.done or (seat.process is not None and seat.process.poll() is None)


def stop_with_parent(stop: Callable[[], None]) -> None:
    """In a supervised process: stop when the supervisor is gone, however it died."""
    leash = os.environ.get(LEASH)
    if leash is None:
        return

    def watch() -> None:
        os.read(int(leash), 1)
        _log.warning("the supervisor is gone; this worker stops")
        stop()

    threading.Thread(target=watch, name="dibs-leash", daemon=True).start()
