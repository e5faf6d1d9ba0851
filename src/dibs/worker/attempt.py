"""One attempt at a job, from its claim to its outcome: what `current_job()` returns inside a handler."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal

from dibs.errors import DibsError
from dibs.model.job import Job
from dibs.model.options import JobOptions
from dibs.model.outcome import Attempt as Counters
from dibs.task.registry import Definition

Abort = Literal["timeout", "lost", "shutdown"]

_current: ContextVar[CurrentJob] = ContextVar("dibs_current_job")
_log = logging.getLogger("dibs.job")


class CurrentJob:
    """The job a handler runs for.

    Attributes without an underscore are the handler's; the rest is the worker's bookkeeping, kept in the same
    object because one object a job is what the speed allows.
    """

    __slots__ = (
        "_abort",
        "_beat_at",
        "_definition",
        "_fence",
        "_lease",
        "_settled",
        "_started",
        "_stop",
        "_timeout",
        "job",
    )

    def __init__(self, job: Job, definition: Definition | None, claimed_at: float, lease: float) -> None:
        self.job = job
        self._definition: Definition = definition or _UNKNOWN
        self._lease = lease
        self._beat_at = claimed_at
        self._fence = claimed_at + lease
        self._started = 0.0
        self._timeout: float | None = None
        self._abort: Abort | None = None
        self._stop: Callable[[], object] | None = None
        self._settled = False

    @property
    def id(self) -> str:
        """The job's id."""
        return self.job.id

    @property
    def attempts(self) -> int:
        """Which attempt this is, from 1."""
        return self.job.attempts

    @property
    def payload(self) -> Any:
        """The stored arguments."""
        return self.job.payload

    @property
    def queue(self) -> str:
        """The queue the job came from."""
        return self.job.queue

    @property
    def task(self) -> str:
        """The task's name."""
        return self.job.task

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the time limit is over, the lease is lost, or the worker shuts down.

        An `async def` handler is cancelled and a process is killed by itself; a `def` handler in a thread cannot be
        stopped from outside, so a long one asks this now and then.
        """
        return self._abort is not None

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the job's id, task and attempt."""
        return logging.LoggerAdapter(_log, {"job_id": self.job.id, "task": self.job.task, "attempt": self.job.attempts})

    def __repr__(self) -> str:
        return f"<CurrentJob {self.job.id} {self.job.task} attempt {self.job.attempts}>"

    def _counters(self) -> Counters:
        row = self.job.row
        return Counters(row[0], row[3], row[4], row[6])

    def _age(self) -> int | None:
        """Microseconds since the handler was started."""
        return round((time.monotonic() - self._started) * 1e6) if self._started else None


def _nothing() -> None:
    """Stands for the handler of a task this process does not know."""


_UNKNOWN = Definition("unknown", _nothing, JobOptions(), "thread")


def current_job() -> CurrentJob:
    """The job this code runs for.

    >>> from dibs import Dibs, current_job
    >>> jobs = Dibs("sqlite://")
    >>> @jobs.task
    ... def which() -> int:
    ...     return current_job().attempts
    >>> handle = which.enqueue()
    >>> with jobs.worker():
    ...     handle.result(timeout=10)
    1
    """
    try:
        return _current.get()
    except LookupError:
        raise DibsError(
            "current_job() was called outside a job.",
            "Call it inside a handler that a worker runs, in its own thread or task.",
        ) from None
