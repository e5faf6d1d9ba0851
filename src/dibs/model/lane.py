"""A lane, the place in it where this process claimed last, and when to look back behind that place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dibs.model.duration import SECOND, Micros
from dibs.model.identity import NIL
from dibs.model.job import Row

SHORT = 60 * SECOND
"""How far before the mark a short look begins."""
SHARE = 20
"""A look may take one twentieth of the time: its pause is its cost times this."""
BUSY_LOOK = 1.0
IDLE_LOOK = 0.25
"""Seconds between two short looks at least, while there is work in the lane and while there is none."""

LIVELY = 1.0
"""Seconds an empty lane is still peeked at whenever any is. After that, when there is time for it."""

Look: TypeAlias = Literal["short", "full"]


class Cost:
    """Seconds something takes that is done again and again: the less of the last two times.

    One time that met a server which stood still says nothing of the next: twenty times six seconds would be two
    minutes in which nobody looks.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = float("inf")

    def of(self, seconds: float) -> float:
        """What it costs, now that it has taken so long."""
        cost = min(self._last, seconds)
        self._last = seconds
        return cost


@dataclass(slots=True)
class Lane:
    """One (queue, priority) pair.

    The mark steps over the dead index entries that pile up while somebody holds an old snapshot. What appears
    behind it - late commits, returned claims, past times - is found by looking back: a claim now and then
    begins a minute before the mark, or at the front of the lane.
    """

    queue: str
    priority: int
    mark_at: Micros = 0
    mark_id: str = NIL
    short_due: float = 0.0
    full_due: float = 0.0
    empty_since: float | None = None
    """When, by the worker's clock, it was first found empty; None while there is work, or nobody has looked yet."""
    next_due: float | None = None
    """When, by the worker's clock, the first job that waits for its time will be due; None if none was seen."""
    short_cost: Cost = field(default_factory=Cost, repr=False, compare=False)
    full_cost: Cost = field(default_factory=Cost, repr=False, compare=False)

    def lively(self, now: float) -> bool:
        """Whether there was work a moment ago, or some is due now."""
        if self.empty_since is None or now - self.empty_since < LIVELY:
            return True
        return self.next_due is not None and now >= self.next_due

    def claimed(self, rows: Sequence[Row], backlog: bool = False) -> None:
        """Move the mark to the last job claimed.

        A look behind the mark moves it back only if it found a `backlog`, more than it could take: the rest is
        claimed from there at full speed instead of at the pace of looks (a queue that was paused, a long load
        that committed late).
        """
        if rows:
            self.empty_since = None
            at, last = rows[-1][7], rows[-1][0]
            if backlog or (at, last) > (self.mark_at, self.mark_id):
                self.mark_at, self.mark_id = at, last

    def rewind(self, row: Row) -> None:
        """Move the mark back to a job that was handed back to its place."""
        self.mark_at, self.mark_id = min((self.mark_at, self.mark_id), (row[7], row[0]))

    def found_empty(self, now: Micros, at: float) -> None:
        """Nothing could be claimed up to `now`: the mark need not stay further behind than a short look."""
        if self.empty_since is None:
            self.empty_since = at
        if now - SHORT > self.mark_at:
            self.mark_at, self.mark_id = now - SHORT, NIL

    def passed(self, now: Micros) -> None:
        """All that is there up to `now` is for others: only looks go behind it, and they take their time."""
        self.mark_at, self.mark_id = max((self.mark_at, self.mark_id), (now, NIL))

    def look_due(self, now: float) -> Look | None:
        """Whether it is time to look behind the mark, and how far."""
        if now >= self.full_due:
            return "full"
        return "short" if now >= self.short_due else None

    def looked(self, look: Look, at: float, cost: float, found: bool) -> None:
        """Plan the next look after one that took `cost` seconds."""
        pause = BUSY_LOOK if look == "full" or found else IDLE_LOOK
        usual = (self.full_cost if look == "full" else self.short_cost).of(cost)
        due = at + cost + max(pause, SHARE * usual)
        if look == "full":
            self.full_due = due
        self.short_due = max(self.short_due, due) if look == "full" else due


def claim_order(lanes: Sequence[Lane], turn: int) -> list[Lane]:
    """Highest priority first; queues of equal priority take turns at being first."""
    if len(lanes) < 2:
        return list(lanes)
    queues = sorted({lane.queue for lane in lanes})
    place = {queue: (index - turn) % len(queues) for index, queue in enumerate(queues)}
    return sorted(lanes, key=lambda lane: (-lane.priority, place[lane.queue]))
