"""Watches time limits, and gives up what may no longer be held. Asks nobody: a hanging database cannot delay it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from dibs.worker.attempt import Abort, CurrentJob
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes
from dibs.worker.runner import Finish, Runner
from dibs.worker.service import Service

_log = logging.getLogger("dibs.worker")
TICK = 0.1
MARGIN = 0.1
"""Of a lease: without a beat confirmed by then, the worker gives the job up before another one can get it."""
STUBBORN = 5.0
"""Seconds a handler may take to obey; then its outcome is stored without it."""
STALLED = 1.0
"""Seconds without a single start, after which jobs that wait for one are handed back: somebody else may be free."""


class Guard(Service):
    """Looks at every held job ten times a second."""

    name = "guard"

    def __init__(
        self,
        hold: Hold,
        outcomes: Outcomes,
        runners: Mapping[str, Runner],
        finish: Finish,
    ) -> None:
        super().__init__()
        self._hold = hold
        self._outcomes = outcomes
        self._runners = runners
        self._finish = finish
        self.lost = 0

    def tick(self) -> float:
        """Look at every held job once."""
        now = time.monotonic()
        for attempt in self._hold.attempts():
            if attempt._settled:
                continue
            if now > attempt._fence - MARGIN * attempt._lease:
                self.lose(attempt)
            elif attempt._started:
                self._watch_limit(attempt, now)
        self._clear_jams(now)
        return TICK

    def lose(self, attempt: CurrentJob) -> None:
        """The lease is lost: stop the handler; whatever it still answers is not stored."""
        if not self._hold.drop(attempt):
            return
        attempt._settled = True
        self.lost += 1
        _log.warning("the lease of job %s is lost; its handler is being stopped", attempt.id)
        self.stop_handler(attempt, "lost")

    def stop_handler(self, attempt: CurrentJob, reason: Abort) -> None:
        """Stop one handler for a reason."""
        attempt._abort = reason
        self._runners[attempt._definition.run_in].abort(attempt)

    def _watch_limit(self, attempt: CurrentJob, now: float) -> None:
        if attempt._timeout is None:
            attempt._timeout = self._outcomes.time_limit(attempt)
        over = now - attempt._started - attempt._timeout
        if over > 0 and attempt._abort is None:
            self.stop_handler(attempt, "timeout")
        if over > STUBBORN and attempt._abort == "timeout":
            _log.warning("job %s went on after its time limit; its outcome is stored without it", attempt.id)
            self._finish(attempt, self._outcomes.timed_out(attempt))

    def _clear_jams(self, now: float) -> None:
        """Where nothing starts any more (long jobs, a blocked loop, threads that do not obey), let others have it."""
        for runner in self._runners.values():
            if runner.waiting and now - runner.moved_at > STALLED:
                for attempt in runner.take_back():
                    self._finish(attempt, self._outcomes.returned_unrun(attempt))
