"""From how a handler ended to what becomes of its job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dibs.model.backoff import DEFAULT_BACKOFF
from dibs.model.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES, JobSettings
from dibs.model.outcome import (
    Back,
    Control,
    Final,
    Policy,
    Problem,
    after_control,
    after_crash,
    after_error,
    after_success,
    describe,
)
from dibs.model.settings import DEFAULT_TIMEOUT, QueueSettings
from dibs.worker.attempt import CurrentJob

Settlement = Final | Back
REFUSED = "refused"
"""The kind of problem of an outcome that the database did not take."""


class Outcomes:
    """Decides outcomes, with the settings of queues as they are now."""

    def __init__(self, result_limit: int) -> None:
        self._result_limit = result_limit
        self.queues: dict[str, tuple[bool, QueueSettings]] = {}

    def returned(self, attempt: CurrentJob, value: Any) -> Settlement:
        """The handler returned: a result, or a wish to be run again or not at all."""
        row = attempt.job.row
        if value is None:
            return Final(row[0], row[3], "completed", None, attempt._age())
        if isinstance(value, Control):
            return self.raised(attempt, value)
        return self._decided(attempt, lambda: after_success(attempt._counters(), value, self._result_limit))

    def raised(self, attempt: CurrentJob, error: BaseException) -> Settlement:
        """The handler raised."""
        counters, policy = attempt._counters(), self.policy(attempt)
        if isinstance(error, Control):
            return self._decided(attempt, lambda: after_control(counters, policy, error))
        return self._decided(attempt, lambda: after_error(counters, policy, describe(error)))

    def _decided(self, attempt: CurrentJob, decide: Callable[[], Settlement]) -> Settlement:
        """Whatever a handler answers has an outcome: a result or a control that cannot be read is its failure."""
        try:
            settled = decide()
        except Exception as error:  # noqa: BLE001 - a result may run any code when it is written as JSON
            settled = after_error(attempt._counters(), self.policy(attempt), describe(error))
        return settled._replace(age=attempt._age()) if isinstance(settled, Final) else settled

    def timed_out(self, attempt: CurrentJob) -> Settlement:
        """The handler ran into its time limit."""
        problem = Problem(
            "timeout", "TimeLimitExceeded", f"The handler was stopped after its time limit of {attempt._timeout:g} s"
        )
        return after_error(attempt._counters(), self.policy(attempt), problem)

    def refused(self, attempt: CurrentJob, error: Exception) -> Settlement:
        """The database does not take the outcome."""
        problem = describe(error, REFUSED)._replace(traceback=None)
        return after_error(attempt._counters(), self.policy(attempt), problem, retry_in=0)

    def crashed(self, attempt: CurrentJob, reason: str) -> Settlement:
        """The process that ran the handler died."""
        return after_crash(attempt._counters(), self.policy(attempt), Problem("crash", "ProcessDied", reason))

    def returned_unrun(self, attempt: CurrentJob, delay: int | None = None) -> Back:
        """The job was not run, and that is not its fault: the attempt does not count, and it keeps its place."""
        row = attempt.job.row
        if delay is None:
            return Back(row[0], row[3], 0, refund=1, at=row[7])
        return Back(row[0], row[3], delay, refund=1)

    def cut_off(self, attempt: CurrentJob, delay: int | None = None) -> Back:
        """The worker stops before the handler has ended: the attempt does not count, but why it is run again is
        recorded."""
        problem = Problem("shutdown", "WorkerStopped", "The worker stopped before the handler had ended")
        return self.returned_unrun(attempt, delay)._replace(problem=problem)

    def policy(self, attempt: CurrentJob) -> Policy:
        """Retries of this job: what it says itself, else its task, else its queue, else the default."""
        task, queue = attempt._definition, self._queue(attempt)
        own = attempt.job.settings
        return Policy(
            attempt.job.max_attempts or queue.max_attempts or DEFAULT_MAX_ATTEMPTS,
            own.max_crashes or task.max_crashes or queue.max_crashes or DEFAULT_MAX_CRASHES,
            own.backoff or task.backoff or queue.backoff or DEFAULT_BACKOFF,
        )

    def at_last_chance(self, attempt: CurrentJob) -> bool:
        """Whether one more crash would end the job."""
        return attempt.job.row[6] + 1 >= self.policy(attempt).max_crashes

    def time_limit(self, attempt: CurrentJob) -> float:
        """Seconds this attempt may run."""
        text = attempt.job.row[11]
        own = JobSettings.read(text).timeout if text else None
        limit = own or attempt._definition.timeout or self._queue(attempt).timeout
        return limit or DEFAULT_TIMEOUT

    def _queue(self, attempt: CurrentJob) -> QueueSettings:
        return self.queues.get(attempt.job.queue, _NONE)[1]


_NONE = (False, QueueSettings())
