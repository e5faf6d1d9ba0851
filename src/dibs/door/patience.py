"""Waiting for something in the database: pauses that grow, and patience with a database that is away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from dibs.errors import DatabaseUnreachable

T = TypeVar("T")
BEARABLE = 60.0
"""Seconds on end for which somebody who waits without a deadline bears that the database is away."""
_LONGEST_PAUSE = 0.25


class Patience:
    """One wait: looks now and then until its deadline.

    A restart of the database that is over before the deadline is not noticed. Without a deadline a minute's absence
    is borne; who waits for ever for a server that is gone for good would not hear of it.
    """

    def __init__(self, span: float | None) -> None:
        self._end = None if span is None else time.monotonic() + span
        self._away_since: float | None = None

    def pauses(self, first: float) -> Iterator[float]:
        """The pause after each look; short at first, growing. The last look is at the deadline, its pause is 0."""
        pause, left = first, _LONGEST_PAUSE
        while left > 0:
            left = _LONGEST_PAUSE if self._end is None else max(0.0, self._end - time.monotonic())
            yield min(pause, left)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def look(self, see: Callable[[], T]) -> T | None:
        """What is to be seen; None if the database is away and it is too early to give up."""
        try:
            seen = see()
        except DatabaseUnreachable:
            now = time.monotonic()
            since = self._away_since = now if self._away_since is None else self._away_since
            if now >= (since + BEARABLE if self._end is None else self._end):
                raise
            return None
        self._away_since = None
        return seen
