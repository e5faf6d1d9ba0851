"""Claims as many jobs as there is room for, and hands them to the runners."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from dibs.model.job import Job
from dibs.store.claimer import Claimer
from dibs.store.reaper import Reaper
from dibs.task.registry import Registry
from dibs.worker.attempt import CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.line import Line
from dibs.worker.options import Settings
from dibs.worker.outcomes import Outcomes, Settlement
from dibs.worker.room import Room
from dibs.worker.runner import Finish, Runner
from dibs.worker.service import Service
from dibs.worker.sleeper import Sleeper
from dibs.worker.suspects import Suspects

_log = logging.getLogger("dibs.worker")


class Fetcher(Service):
    """Decides how many to claim, and how long to wait when there is nothing."""

    name = "fetcher"

    def __init__(
        self,
        line: Line,
        claimer: Claimer,
        sleeper: Sleeper,
        tasks: Registry,
        hold: Hold,
        outcomes: Outcomes,
        runners: Mapping[str, Runner],
        settings: Settings,
    ) -> None:
        super().__init__()
        self._line = line
        self._claimer = claimer
        self._tasks = tasks
        self._hold = hold
        self._outcomes = outcomes
        self._runners = runners
        self._settings = settings
        self._sleeper = sleeper
        self._suspects = Suspects(hold, outcomes.at_last_chance)
        self._room = Room(hold, runners, settings)
        self._reaper = Reaper(line.call, claimer.dialect)
        self._strangers: set[str] = set()
        self._rung = False
        self._full = False
        self.claimed = 0
        self.put_back: Finish = _nowhere
        self.when_empty: Callable[[], None] | None = None

    def ring(self) -> None:
        """Somebody enqueued: look now."""
        self._rung = True
        self.wake()

    def nudge(self) -> None:
        """Jobs were settled: if that was what this waits for, go on."""
        if self._full:
            self.wake()

    def tick(self) -> float:
        """Claim once."""
        leave = self._suspects.leave()
        room = 0 if leave == "none" else self._room.total()
        self._full = room <= 0
        if self._full:
            return 0.02
        if self._rung:
            self._rung = False
            self._claimer.hurry()
        return self._claim(1 if leave == "one" else room, innocents=leave == "innocents")

    def _claim(self, room: int, innocents: bool) -> float:
        sent, idle, rooms = time.monotonic(), not len(self._hold), self._room.of_queues()
        self._full = innocents or any(left <= 0 for left in rooms.values())
        if self._strangers:
            self._claimer.tasks = tuple(sorted(definition.name for definition in self._tasks))
        jobs = self._claimer.claim(min(room, self._settings.batch), rooms=rooms, innocents=innocents)
        self._outcomes.queues = self._claimer.settings
        if jobs:
            self._take(jobs, sent)
            return self._sleeper.worked()
        self._suspects.choose(())
        if self.when_empty is not None and idle:  # already before the claim: nothing was put back in between
            return self._look_everywhere(sent, self.when_empty)
        return self._sleeper.idle(self._claimer.due_in)

    def _look_everywhere(self, sent: float, when_empty: Callable[[], None]) -> float:
        """A claim believes its marks and the lanes it knows; who is to end when all is done does not."""
        jobs = self._claimer.claim(1, thorough=True)
        if jobs:
            self._take(jobs, sent)
        elif not self._reaper.sweep([(lane.queue, lane.priority) for lane in self._claimer.lanes], budget=float("inf")):
            when_empty()
        return 0.0

    def closed(self) -> None:
        """Hang up."""
        self._line.close()

    def _take(self, jobs: list[Job], sent: float) -> None:
        self.claimed += len(jobs)
        attempts = []
        for job in jobs:
            definition = self._tasks.find(job.row[1])
            if definition is None:
                self._refuse(job)
                continue
            attempts.append(CurrentJob(job, definition, sent, self._claimer.lease_of(job.queue)))
        self._hold.add(attempts)
        # A claim that was on its way when the worker was told to stop, and jobs that no process is free for.
        self._hand_back(attempts if self.stopping else self._room.surplus(attempts))
        suspects = [attempt for attempt in attempts if attempt.job.row[6] and not attempt._settled]
        lone = self._suspects.choose(suspects)
        if suspects:
            self._hand_back([attempt for attempt in suspects if attempt is not lone])
        self._submit([attempt for attempt in attempts if not attempt._settled])

    def _submit(self, attempts: list[CurrentJob]) -> None:
        by_place: dict[str, list[CurrentJob]] = {}
        for attempt in attempts:
            by_place.setdefault(attempt._definition.run_in, []).append(attempt)
        for place, group in by_place.items():
            self._runners[place].submit(group)

    def _refuse(self, job: Job) -> None:
        """A task this worker does not know costs no attempt: another version may know it. Its jobs keep their
        places, and from now on this worker claims only what it knows."""
        if job.task not in self._strangers:
            self._strangers.add(job.task)
            _log.warning("task %r is not registered here; its jobs are left for other workers", job.task)
        attempt = CurrentJob(job, None, time.monotonic(), self._claimer.lease_of(job.queue))
        self._hold.add([attempt])
        self.put_back(attempt, self._outcomes.returned_unrun(attempt))

    def _hand_back(self, attempts: Sequence[CurrentJob]) -> None:
        """Not now, or not here. The jobs keep their places, and this worker goes back to them."""
        for attempt in attempts:
            self.put_back(attempt, self._outcomes.returned_unrun(attempt))
        self._claimer.rewind([attempt.job for attempt in attempts])


def _nowhere(_attempt: CurrentJob, _settlement: Settlement) -> None:
    """Where outcomes go until the worker says where."""
