"""Several worker processes under one parent: each uses one core; one that dies is started again."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dibs.worker.signals import stopped_by_signals

_log = logging.getLogger("dibs.worker")
LEASH = "DIBS_LEASH"
"""Environment variable with the number of a pipe that stays open as long as the supervisor lives."""
TICK = 0.1
LONGEST_PAUSE = 30.0
HEALTHY = 60.0
"""Seconds a process must have lived for its earlier deaths to be forgotten."""


@dataclass(slots=True)
class Seat:
    """One of the processes, and when the next one may take its place."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    started_at: float = 0.0
    not_before: float = 0.0
    told: int = 0
    done: bool = field(default=False)


class Supervisor:
    """Runs `command` in `count` processes. One that fails is replaced, after a pause that grows with its deaths."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._command = list(command)
        self._seats = [Seat(number) for number in range(1, count + 1)]
        self._asked = 0
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
        return 0 if all(code == 0 for code in codes) else 1

    def health(self) -> dict[str, float]:
        """For each process: zero while it lives or has ended well, else the seconds since it was last started."""
        now = time.monotonic()
        return {f"process {seat.number}": 0.0 if _well(seat) else now - seat.started_at for seat in self._seats}

    def _ask(self) -> None:
        """Somebody wants this to stop: passed on by the loop that also starts processes, so that none is missed."""
        self._asked += 1
        self._news.set()

    def _over(self) -> bool:
        if self._asked:
            return all(seat.process is None or seat.process.poll() is not None for seat in self._seats)
        return all(seat.done for seat in self._seats)

    def _look_after(self, seat: Seat) -> None:
        now = time.monotonic()
        if self._asked:
            self._pass_on(seat)
            return
        if seat.process is None:
            if now >= seat.not_before and not seat.done:
                self._start(seat, now)
            return
        code = seat.process.poll()
        if code is None:
            return
        seat.done = code == 0
        if code == 0:
            return
        seat.deaths = 1 if now - seat.started_at > HEALTHY else seat.deaths + 1
        pause = min(LONGEST_PAUSE, 0.25 * 2**seat.deaths) * random.uniform(0.8, 1.2)
        _log.warning("worker process %d ended with code %d; the next starts in %.1f s", seat.number, code, pause)
        seat.process, seat.not_before = None, now + pause

    def _pass_on(self, seat: Seat) -> None:
        """Tell a process as often as we were told: the second time forces, here as there."""
        while seat.process is not None and seat.process.poll() is None and seat.told < self._asked:
            seat.process.terminate()
            seat.told += 1

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
