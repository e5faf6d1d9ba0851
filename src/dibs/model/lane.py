"""A lane, the place in it where this process claimed last, and when to look back behind that place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dibs.model.duration import SECOND, Micros
from dibs.model.identity import NIL
from dibs.model.job import Row

SHORT = 60 * SECOND
"""How far before the mark a short look begins."""
SHARE = 20
"""A look may take one twentieth of the time: its pause is its cost times this."""


@dataclass(slots=True)
class Lane:
    """One (queue, priority) pair.

    The mark steps over the dead index entries that pile up while somebody holds an old snapshot. What appears
    behind it - late commits, returned claims, past times - is found by looking back: a short look a minute
    before the mark, and a full one from the start.
    """

    queue: str
    priority: int
    mark_at: Micros = 0
    mark_id: str = NIL
    short_due: float = 0.0
    full_due: float = 0.0

    def advance(self, rows: Sequence[Row]) -> None:
        """Move the mark to the last job claimed; a look behind the mark never moves it back."""
        if rows:
            last = rows[-1]
            if (last.available_at, last.id) > (self.mark_at, self.mark_id):
                self.mark_at, self.mark_id = last.available_at, last.id

    def found_empty(self, now: Micros) -> None:
        """Nothing could be claimed up to `now`: the mark need not stay further behind than a short look."""
        if now - SHORT > self.mark_at:
            self.mark_at, self.mark_id = now - SHORT, NIL

    def looked(self, full: bool, at: float, cost: float, pause: float) -> None:
        """Plan the next look after one that took `cost` seconds."""
        due = at + cost + max(pause, SHARE * cost)
        if full:
            self.full_due = due
        self.short_due = max(self.short_due, due) if full else due

    def hurry(self) -> None:
        """Somebody rang: a job may have appeared just behind the mark."""
        self.short_due = min(self.short_due, self.full_due)


def claim_order(lanes: Sequence[Lane], turn: int) -> list[Lane]:
    """Highest priority first; queues of equal priority take turns at being first."""
    queues = sorted({lane.queue for lane in lanes})
    place = {queue: (index - turn) % len(queues) for index, queue in enumerate(queues)}
    return sorted(lanes, key=lambda lane: (-lane.priority, place[lane.queue]))
