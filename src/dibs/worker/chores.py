"""Duties any worker may do, one at a time: taken from a row of the database, without a leader."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dibs.errors import DibsError
from dibs.model.duration import SECOND, micros
from dibs.model.status import FINAL
from dibs.store import queues as queue_operations
from dibs.store import roll
from dibs.store.claim import known_lanes
from dibs.store.dialect import Dialect
from dibs.store.reaper import Reaper
from dibs.worker.extras import Host
from dibs.worker.line import Line
from dibs.worker.service import Service

_log = logging.getLogger("dibs.worker")
REAP_EVERY = 1.0
PRUNE_EVERY = 60.0
PRUNE_ROUNDS = 20
SILENCE = 600 * SECOND


@dataclass(slots=True)
class Chore:
    """A duty: its name, how often it is due, and what to do. `do` answers seconds to stay away beyond that."""

    name: str
    every: float
    do: Callable[[], float]


class Chores(Service):
    """Tries to take each duty when it should be due; most of the time another worker has it."""

    name = "chores"

    def __init__(self, line: Line, worker: str, chores: list[Chore]) -> None:
        super().__init__()
        self._line = line
        self._worker = worker
        self._chores = chores
        self._known = False

    def tick(self) -> float:
        """Do what is due."""
        if not self._known:
            for chore in self._chores:
                self._line.call(partial(roll.add_chore, chore.name))
            self._known = True
        away, failed = 0.0, None
        for chore in self._chores:
            try:
                if self._take(chore):
                    away = max(away, chore.do())
            except DibsError as error:  # the other duties must not wait for this one
                failed = failed or error
        if failed is not None:
            raise failed
        return max(away, min(chore.every for chore in self._chores)) * random.uniform(0.9, 1.1)

    def closed(self) -> None:
        """Hang up."""
        self._line.close()

    def _take(self, chore: Chore) -> bool:
        span = round(chore.every * SECOND)
        return self._line.call(lambda: roll.take_chore(chore.name, span, self._worker))


class Reaping:
    """Gives expired leases back."""

    def __init__(self, line: Line, dialect: Dialect) -> None:
        self._line = line
        self._reaper = Reaper(line.call, dialect)
        self.taken = 0

    def do(self) -> float:
        """One sweep over a stretch of each lane."""
        lanes, _ = self._line.call(lambda: known_lanes(None))
        taken = self._reaper.sweep(lanes)
        if taken:
            self.taken += taken
            _log.warning("%d expired leases were taken back", taken)
        return self._reaper.pause


class Pruning:
    """Forgets finished jobs past their retention, and workers that went silent."""

    def __init__(self, line: Line, dialect: Dialect) -> None:
        self._line = line
        self._dialect = dialect

    def do(self) -> float:
        """A bounded number of batches for each queue and outcome."""
        self._line.call(lambda: roll.forget_silent(SILENCE))
        for state in self._line.call(queue_operations.queues):
            for outcome in sorted(FINAL):
                keep = state.settings.keep(outcome)
                if keep is not None:
                    self._prune(state.name, outcome, micros(keep))
        return 0.0

    def _prune(self, queue: str, outcome: str, keep: int) -> None:
        for _ in range(PRUNE_ROUNDS):
            gone = self._line.call(lambda: queue_operations.prune(self._dialect, queue, [outcome], keep))
            if gone < queue_operations.PRUNE_BATCH:
                return


def duties(line: Line, dialect: Dialect) -> list[Chore]:
    """The duties of this version."""
    return [
        Chore("reap", REAP_EVERY, Reaping(line, dialect).do),
        Chore("prune", PRUNE_EVERY, Pruning(line, dialect).do),
    ]


def services(host: Host) -> list[Service]:
    """One service for all duties, on one line."""
    line = Line(host.store)
    return [Chores(line, host.worker, duties(line, host.store.dialect))]
