"""How long an idle worker waits, and whether producers are asked to ring for it."""

from __future__ import annotations

import random
import time
from collections import deque

from dibs.model.duration import SECOND
from dibs.store import roll
from dibs.worker.line import Line
from dibs.worker.options import Settings

LULL = 0.05
"""Seconds without work before a worker goes to sleep and asks to be rung for."""
FAST = 0.002
"""Seconds between polls during a lull."""
SLOW = 0.04
"""Seconds between polls where nobody can ring."""
BELL_POLL = 1.0
"""Seconds between polls where somebody can ring: only for what a bell cannot tell."""
VIGIL = 2 * roll.QUIET
"""Seconds of polls as quick as before after it was said that the worker sleeps: until every producer has heard it."""
ALARM = 120.0
"""Seconds producers are asked to ring for; renewed at half time."""


class Sleeper:
    """How long to wait when there is nothing to do, and whether producers are asked to ring.

    While jobs keep coming, polls are milliseconds apart and nobody rings. After a lull the worker says that it
    sleeps; when producers know that, their commits ring and polls are a second apart. Where nobody can ring, polls
    slow down.
    """

    def __init__(self, line: Line, worker: str, settings: Settings, can_hear: bool, rings: bool) -> None:
        self._line = line
        self._worker = worker
        self._settings = settings
        self._can_hear = can_hear
        self._rings = rings
        self._asleep_until = 0.0
        self._vigil_until = 0.0
        self._worked_at = time.monotonic()
        self._wakes: deque[float] = deque(maxlen=100)

    def worked(self) -> float:
        """A claim found something."""
        now = self._worked_at = time.monotonic()
        self._wakes.append(now)
        if self._asleep_until and len(self._wakes) == self._wakes.maxlen and now - self._wakes[0] < 1.0:
            # A hundred claims in a second: polling is cheaper for everybody than a ring for each.
            self._tell(0.0)
        return 0.0

    def idle(self, due_in: float | None) -> float:
        """A claim found nothing: how long to wait?"""
        now = time.monotonic()
        lull = now - self._worked_at
        if self._settings.poll is not None and not self._can_hear:
            pause = self._settings.poll * random.uniform(0.8, 1.2)
        elif lull < LULL or now < self._vigil_until:
            pause = FAST
        elif self._can_hear:
            if self._rings and now > self._asleep_until - ALARM / 2:
                self._fall_asleep(now)
                return 0.0
            pause = (self._settings.poll or BELL_POLL) * random.uniform(0.7, 1.0)
        else:
            pause = SLOW * random.uniform(0.7, 1.0)
        return pause if due_in is None else max(0.0005, min(pause, due_in))

    def _fall_asleep(self, now: float) -> None:
        awake = now > self._asleep_until
        self._tell(ALARM)
        if awake:
            self._vigil_until = time.monotonic() + VIGIL

    def _tell(self, span: float) -> None:
        self._line.call(lambda: roll.sleep(self._worker, round(span * SECOND)))
        self._asleep_until = time.monotonic() + span if span else 0.0
