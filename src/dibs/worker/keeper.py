"""Keeps leases alive and watches time limits, in a thread no handler and no event loop can block."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Protocol

from dibs.errors import DatabaseUnreachable
from dibs.model.duration import SECOND
from dibs.store.dialect import Dialect
from dibs.store.settle import beat
from dibs.worker.attempt import Abort, CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.line import Line
from dibs.worker.outcomes import Outcomes, Settlement
from dibs.worker.service import Service

_log = logging.getLogger("dibs.worker")
TICK = 0.1
SHOWN_AFTER = 0.25
"""A handler that runs longer than this is shown as running: its first beat comes at once."""
MARGIN = 0.1
"""Of a lease: without a beat confirmed by then, the worker gives the job up before another one can get it."""
STUBBORN = 5.0
"""Seconds a handler may take to obey; then its outcome is stored without it."""
MOST = 1_000


class Runner(Protocol):
    """What the keeper needs of a runner."""

    def abort(self, attempt: CurrentJob) -> None:
        """Stop a running handler as far as that is possible."""
        ...


class Keeper(Service):
    """Beats for every held job at a third of its lease."""

    name = "keeper"

    def __init__(
        self,
        line: Line,
        dialect: Dialect,
        hold: Hold,
        outcomes: Outcomes,
        runners: Mapping[str, Runner],
        finish: Callable[[CurrentJob, Settlement], None],
    ) -> None:
        super().__init__()
        self._line = line
        self._dialect = dialect
        self._hold = hold
        self._outcomes = outcomes
        self._runners = runners
        self._finish = finish
        self.lost = 0

    def tick(self) -> float:
        """Look at every held job once."""
        now = time.monotonic()
        due: list[CurrentJob] = []
        for attempt in self._hold.attempts():
            if attempt._settled:
                self._insist(attempt, now)
                continue
            if attempt._started:
                self._watch_limit(attempt, now)
            if now > attempt._fence - MARGIN * attempt._lease:
                self._lose(attempt)
            elif self._is_due(attempt, now):
                due.append(attempt)
        if due:
            self._beat(due)
        return TICK

    def closed(self) -> None:
        """Hang up."""
        self._line.close()

    def stop_handler(self, attempt: CurrentJob, reason: Abort) -> None:
        """Stop one handler for a reason."""
        attempt._abort = reason
        self._runners[attempt._definition.run_in].abort(attempt)

    def _is_due(self, attempt: CurrentJob, now: float) -> bool:
        if now - attempt._beat_at > attempt._lease / 3:
            return True
        shown = attempt._beat_at > attempt._started
        return bool(attempt._started) and not shown and now - attempt._started > SHOWN_AFTER

    def _watch_limit(self, attempt: CurrentJob, now: float) -> None:
        if attempt._timeout is None:
            attempt._timeout = self._outcomes.time_limit(attempt)
        over = now - attempt._started - attempt._timeout
        if over > 0 and attempt._abort is None:
            self.stop_handler(attempt, "timeout")
        in_thread = attempt._definition.run_in == "thread"
        if over > 0 and attempt._abort == "timeout" and (in_thread or over > STUBBORN):
            _log.warning("job %s went on after its time limit; its outcome is stored without it", attempt.id)
            self._finish(attempt, self._outcomes.timed_out(attempt))

    def _insist(self, attempt: CurrentJob, now: float) -> None:
        """A job whose outcome waits to be stored needs its lease until then."""
        if now - attempt._beat_at > attempt._lease / 3:
            self._beat([attempt])

    def _beat(self, due: list[CurrentJob]) -> None:
        due.sort(key=lambda attempt: attempt._lease)
        for lease, group in groupby(due, key=lambda attempt: attempt._lease):
            attempts = list(group)
            for start in range(0, len(attempts), MOST):
                self._beat_some(attempts[start : start + MOST], lease)

    def _beat_some(self, attempts: list[CurrentJob], lease: float) -> None:
        sent = time.monotonic()
        held = [(attempt.id, attempt.job.token, attempt._age()) for attempt in attempts]
        try:
            lost = self._line.call(lambda: beat(self._dialect, held, round(lease * SECOND)))
        except DatabaseUnreachable as error:
            # The fence of each job decides how long the worker may go on without an answer.
            _log.warning("a beat for %d jobs failed: %s", len(held), error)
            return
        for attempt in attempts:
            if attempt.id in lost:
                if not attempt._settled:
                    self._lose(attempt)
            else:
                attempt._beat_at = sent
                attempt._fence = sent + lease

    def _lose(self, attempt: CurrentJob) -> None:
        """The lease is lost: stop the handler; whatever it still answers is not stored."""
        if attempt not in self._hold.attempts():
            return
        attempt._settled = True
        self.lost += 1
        _log.warning("the lease of job %s is lost; its handler is being stopped", attempt.id)
        self._hold.drop(attempt)
        self.stop_handler(attempt, "lost")
