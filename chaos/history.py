"""The merged history of a run: events of all processes by time, and the runs of handlers they tell of."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

END = ("end", "lost")
"""Events by which a handler says that it is over: with an outcome, or because it was told to stop."""
DEATHS = ("killed", "exit")
"""Events that end a process: the nemesis saw it gone, or it wrote its last word itself."""
FAULTS = ("kill", "killed", "stop", "cont", "down", "up")
"""What the nemesis does."""


class Claim(NamedTuple):
    """One lease of a job: the token tells it from all others of that job."""

    job: str
    token: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something one process saw. Times are microseconds."""

    kind: str
    wall: int
    mono: int
    pid: int
    fields: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def get(self, name: str) -> Any:
        """A field that may be absent."""
        return self.fields.get(name)

    @property
    def claim(self) -> Claim:
        """The claim it is about."""
        return Claim(self["job"], self["token"])

    def shown(self) -> dict[str, Any]:
        """As it stands in a verdict."""
        return {"mono": self.mono, "wall": self.wall, "pid": self.pid, "kind": self.kind, **self.fields}


@dataclass(slots=True)
class Run:
    """One execution of a handler for one claim."""

    job: str
    token: int
    start: Event
    end: Event | None = None
    lost: Event | None = None
    died: Event | None = None

    @property
    def claim(self) -> Claim:
        """The claim it was made for."""
        return Claim(self.job, self.token)

    @property
    def until(self) -> float:
        """When it was over, by the monotonic clock; a run that nothing ended goes on for ever."""
        over = self.end or self.lost or self.died
        return over.mono if over is not None else float("inf")

    @property
    def how(self) -> str | None:
        """How the handler ended, if it did."""
        return None if self.end is None else str(self.end["how"])


class History:
    """All events, and what follows from them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events: Sequence[Event] = sorted(events, key=lambda event: event.mono)
        self.runs: dict[str, list[Run]] = defaultdict(list)
        self.claims: dict[Claim, list[Event]] = defaultdict(list)
        self.leases: dict[Claim, int] = {}
        self._collect()
        self._bury()

    def of(self, *kinds: str) -> list[Event]:
        """Events of some kinds, by time."""
        return [event for event in self.events if event.kind in kinds]

    def all_runs(self) -> list[Run]:
        """The runs of all jobs."""
        return [run for runs in self.runs.values() for run in runs]

    def paused(self, pid: int, since: int, until: int) -> bool:
        """Whether a process stood still in some span of wall clock."""
        return any(event["target"] == pid and since <= event.wall <= until for event in self.of("stop", "cont"))

    def pauses(self, pid: int) -> list[tuple[Event, Event]]:
        """When a process stood still: from and to."""
        stops, ends = ([event for event in self.of(kind) if event["target"] == pid] for kind in ("stop", "cont"))
        return list(zip(stops, ends, strict=False))

    def about(self, job: str, n: int | None) -> list[Event]:
        """What happened to one job, and what the nemesis did to the processes that ran it."""
        own = [event for event in self.events if event.get("job") == job or (n is not None and event.get("n") == n)]
        pids = {event.pid for event in own}
        others = [event for event in self.of(*FAULTS) if event.get("target") in {*pids, None}]
        return sorted([*own, *others], key=lambda event: event.mono)

    def _collect(self) -> None:
        going: dict[tuple[Claim, int], Run] = {}
        for event in self.events:
            if event.kind == "claim.ok":
                self.claims[event.claim].append(event)
            if event.kind in ("claim.ok", "beat.ok"):
                self.leases[event.claim] = max(event["until"], self.leases.get(event.claim, 0))
            elif event.kind == "start":
                run = going[event.claim, event.pid] = Run(event["job"], event["token"], event)
                self.runs[run.job].append(run)
            elif event.kind in END and (event.claim, event.pid) in going:
                setattr(going[event.claim, event.pid], event.kind, event)

    def _bury(self) -> None:
        """Runs that ended with their process. Its other threads may have written after its last word."""
        deaths = {event.get("target") or event.pid: event for event in self.of(*DEATHS)}
        for run in self.all_runs():
            if run.end is None and run.lost is None:
                run.died = deaths.get(run.start.pid)


def read(folder: Path) -> History:
    """Merge the journals of a folder. A line that a crash of the machine cut short is left out."""
    events = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            fields = _parsed(line)
            if fields is not None:
                kind, wall, mono, pid = (fields.pop(name) for name in ("kind", "wall", "mono", "pid"))
                events.append(Event(kind, wall, mono, pid, fields))
    return History(events)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        fields: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return fields
