"""Jobs that have lost a holder before: one may be what killed it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias

from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold

ALONE = 2.0
"""Seconds no other suspect begins beside a suspect, and nothing at all beside one at its last chance."""
SLOW = 60.0
"""The same towards other suspects, for one at its last chance: a slow killer must not take them along."""
PATIENCE = 5.0
"""Seconds a worker claims nothing, so that what runs can end before a suspect gets its last chance; what has run
longer is not waited for."""

Leave: TypeAlias = Literal["any", "one", "innocents", "none"]


class Suspects:
    """Decides when a suspect may run. While it may not, it is not even held: whoever is held is hit by a kill.

    Most jobs that lose a holder are innocent, so a suspect runs beside others, but never two that are young: should it
    kill again, it takes no suspect along. At its last chance it runs alone.
    """

    def __init__(self, hold: Hold, at_last_chance: Callable[[CurrentJob], bool]) -> None:
        self._hold = hold
        self._at_last_chance = at_last_chance
        self._lone: CurrentJob | None = None
        self._seen_at: float | None = None
        self._wary = False

    def leave(self) -> Leave:
        """What may be claimed now. After a claim that brought suspects the next ones are claimed one by one."""
        now, lone = time.monotonic(), self._lone
        if lone is not None and lone._settled and not self._hold.holds(lone):
            lone = self._lone = None
        if lone is not None:
            ran = now - lone._started if lone._started else 0.0
            last = self._at_last_chance(lone)
            if ran < ALONE:
                return "none" if last else "innocents"
            if ran < SLOW and last:
                return "innocents"
        if self._clearing(now):
            return "none"
        return "one" if self._wary else "any"

    def choose(self, suspects: Sequence[CurrentJob]) -> CurrentJob | None:
        """Which of the suspects in a batch is to run now; the others are to be handed back before it starts."""
        self._wary = bool(suspects)
        if not suspects:
            self._seen_at = None
            return None
        mild = next((suspect for suspect in suspects if not self._at_last_chance(suspect)), None)
        if mild is None and len(self._hold) > 1:
            now = time.monotonic()
            self._seen_at = self._seen_at or now
            if len(suspects) > 1 or self._clearing(now, suspects):
                return None
        self._seen_at = None
        self._lone = mild or suspects[0]
        return self._lone

    def _clearing(self, now: float, besides: Collection[CurrentJob] = ()) -> bool:
        """Whether a suspect waits for what runs to end: only for what is young enough to do so soon."""
        if self._seen_at is None or now - self._seen_at > PATIENCE:
            return False
        others = [attempt for attempt in self._hold.attempts() if attempt not in besides]
        return any(not attempt._started or now - attempt._started < PATIENCE for attempt in others)
