"""What became of the attempts of this worker: counted, and the failures told in the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

from dibs.model.duration import SECOND
from dibs.model.outcome import Back, Final
from dibs.worker.attempt import CurrentJob
from dibs.worker.outcomes import Settlement

_log = logging.getLogger("dibs.job")
HANDED_BACK = "handed back"
SNOOZED = "snoozed"
RETRYING = "retrying"


class Tally(Counter[str]):
    """Stored outcomes by name: the final statuses, `retrying`, `snoozed`, and `handed back` if it was not run out."""

    @property
    def ran(self) -> int:
        """Attempts that were run to an outcome."""
        return self.total() - self[HANDED_BACK]

    def told(self) -> str:
        """In words."""
        return ", ".join(f"{number} {name}" for name, number in sorted(self.items())) or "nothing was run"

    def take(self, stored: Iterable[tuple[CurrentJob, Settlement]]) -> None:
        """Count what has just been stored."""
        self.update(map(_name, stored))


def _name(stored: tuple[CurrentJob, Settlement]) -> str:
    attempt, settlement = stored
    if settlement.problem is not None:
        _tell(attempt, settlement)
    if isinstance(settlement, Final):
        return settlement.outcome
    if not settlement.refund:
        return RETRYING
    return SNOOZED if attempt._started and settlement.problem is None and settlement.at is None else HANDED_BACK


def _tell(attempt: CurrentJob, settlement: Settlement) -> None:
    """A failure is a warning, the end of a job without success an error that names what to look at."""
    problem = settlement.problem
    assert problem is not None
    job = attempt.job
    why = f"{problem.type}: {problem.message.strip().splitlines()[0] if problem.message.strip() else ''}"
    if isinstance(settlement, Back) and settlement.refund:
        _log.info("%s %s is handed back: %s", job.task, job.id, why)
    elif isinstance(settlement, Back):
        text = "%s %s failed in attempt %d and runs again in %g s: %s"
        _log.warning(text, job.task, job.id, job.attempts, settlement.delay / SECOND, why)
    elif settlement.outcome == "dead":
        text = "%s %s is dead after attempt %d: %s; see: dibs job logs %s"
        _log.error(text, job.task, job.id, job.attempts, why, job.id)
    else:
        _log.info("%s %s is %s: %s", job.task, job.id, settlement.outcome, problem.message)
