"""Hand-made histories and tables: one job that went well, to be changed in one place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.checker import check
from chaos.history import Event, History
from chaos.tables import Failure, Final, Live, Tables
from chaos.verdict import Verdict

SECOND = 1_000_000
WORKER, OTHER, PRODUCER, NEMESIS = 11, 12, 21, 99


@dataclass
class Story:
    """Events and rows, told in seconds. Wall clock and monotonic clock are one."""

    events: list[Event] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)

    def tell(self, at: float, pid: int, kind: str, **fields: Any) -> Story:
        """One line of a journal."""
        time = round(at * SECOND)
        self.events.append(Event(kind, time, time, pid, fields))
        return self

    def asked(self, n: int = 1, job: str = "a", key: str | None = None, new: bool = True, at: float = 0) -> Story:
        """A request and its answer."""
        self.tell(at, PRODUCER, "enqueue.invoke", n=n, task="nap", key=key)
        return self.tell(at + 0.1, PRODUCER, "enqueue.ok", n=n, job=job, new=new)

    def workers(self, slots: int = 1) -> Story:
        """Two workers that are up."""
        return self.tell(0, WORKER, "ready", slots=slots).tell(0, OTHER, "ready", slots=slots)

    def claimed(self, at: float, pid: int = WORKER, job: str = "a", token: int = 1, lease: float = 2) -> Story:
        """A lease."""
        return self.tell(at, pid, "claim.ok", job=job, token=token, until=round((at + lease) * SECOND))

    def ran(
        self, at: float, until: float | None, pid: int = WORKER, job: str = "a", token: int = 1, how: str = "returned"
    ) -> Story:
        """A run of a handler; without an end if `until` is None."""
        self.claimed(at, pid, job, token)
        self.tell(at, pid, "start", n=1, job=job, token=token, attempt=1)
        return self if until is None else self.tell(until, pid, "end", n=1, job=job, token=token, how=how)

    def failed(self, at: float, kind: str = "lease lost", job: str = "a", token: int = 1) -> Story:
        """A recorded failure."""
        self.tables.failures.append(Failure(job, token, 1, kind, round(at * SECOND)))
        return self

    def ended(self, at: float, n: int = 1, job: str = "a", token: int = 1, **row: Any) -> Story:
        """A row in the history."""
        columns: dict[str, Any] = {"attempts": 1, "crashes": 0, "outcome": "completed", "result": {"token": token}}
        self.tables.final.append(Final(job, n, token, finished_at=round(at * SECOND), **{**columns, **row}))
        return self

    def stays(self, n: int = 1, job: str = "a", token: int = 1) -> Story:
        """A row that is still live."""
        self.tables.live.append(Live(job, n, token, 1, 0))
        return self

    def verdict(self, **intended: int) -> Verdict:
        """What the checker says."""
        return check(History(self.events), self.tables, intended)

    def broken(self) -> list[str]:
        """The invariants that do not hold."""
        return sorted({found.invariant for found in self.verdict().violations})


def good(end: float = 2) -> Story:
    """One job: asked for, run once, completed."""
    return Story().workers().asked().ran(1, end).ended(end + 0.1)


def killed() -> Story:
    """One job whose first worker is killed at 2; its lease is over at 3, taken back at 4, and run again at 5."""
    return (
        Story()
        .workers()
        .asked()
        .ran(1, None)
        .tell(2, NEMESIS, "kill", target=WORKER)
        .tell(2, NEMESIS, "killed", target=WORKER)
        .failed(4)
        .ran(5, 6, OTHER, token=3)
        .ended(6.1, token=3, attempts=2, crashes=1)
    )
