"""A job as it is asked for, as a worker holds it, and as an operator sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from dibs.model import stored
from dibs.model.backoff import Backoff
from dibs.model.duration import from_instant
from dibs.model.json_text import decode
from dibs.model.options import JobOptions
from dibs.model.status import Status

DEFAULT_MAX_ATTEMPTS = 5
DEFAULT_MAX_CRASHES = 3


class NewJob(msgspec.Struct, eq=False, gc=False):
    """One request to run a task, not stored yet: `task.job(...)` makes it, `enqueue_many` takes it.

    A struct, for bulk loads make many: it is made in C, and the garbage collector need not look at it.
    """

    task: str
    payload: str
    options: JobOptions

    def __repr__(self) -> str:
        return f"NewJob({self.task!r}, {self.payload[:80]})"


class Enqueued(NamedTuple):
    """The store's answer to an enqueue: which job it is, whether this call made it, and whether nobody slept then."""

    id: str
    created: bool
    replaced: bool = False
    quiet: bool = False


class Row(NamedTuple):
    """What a claim returns of a job, in the order of its SQL."""

    id: str
    task: str
    payload: str
    token: int
    attempts: int
    max_attempts: int | None
    crashes: int
    available_at: int
    lease_until: int
    created_at: int
    unique_key: str | None
    options: str | None


class Job:
    """A claimed job: yours until `lease_until`, as long as nobody holds a newer token.

    A thin view over the claimed row: a worker that runs tens of thousands a second reads three of its fields.
    """

    __slots__ = ("locked_by", "priority", "queue", "row")

    def __init__(self, row: Row, queue: str, priority: int, locked_by: str) -> None:
        self.row = row
        self.queue = queue
        self.priority = priority
        self.locked_by = locked_by

    @property
    def id(self) -> str:
        """UUIDv7 as text."""
        return self.row[0]

    @property
    def task(self) -> str:
        """Name of the task to run."""
        return self.row[1]

    @property
    def payload(self) -> Any:
        """The arguments, as the JSON value they are stored as."""
        return decode(self.row[2])

    @property
    def token(self) -> int:
        """The fence: a counter of claims that never goes back."""
        return self.row[3]

    @property
    def attempts(self) -> int:
        """Which attempt this is, from 1."""
        return self.row[4]

    @property
    def max_attempts(self) -> int | None:
        """How many attempts the job has; None leaves it to the task, the queue or the default."""
        return self.row[5]

    @property
    def crashes(self) -> int:
        """How often a holder of this job was lost."""
        return self.row[6]

    @property
    def available_at(self) -> datetime:
        """When the job became due."""
        return from_instant(self.row[7])

    @property
    def lease_until(self) -> datetime:
        """When the claim ends, unless a heartbeat extends it."""
        return from_instant(self.row[8])

    @property
    def created_at(self) -> datetime:
        """When the job was enqueued."""
        return from_instant(self.row[9])

    @property
    def unique_key(self) -> str | None:
        """The key no other live job of the queue has."""
        return self.row[10]

    @property
    def settings(self) -> JobSettings:
        """The options stored with the job itself."""
        return JobSettings.read(self.row[11])

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.task} attempt {self.attempts} token {self.token}>"


class JobSettings(NamedTuple):
    """The rarely used options of one job, kept as one JSON column."""

    timeout: float | None = None
    backoff: Backoff | None = None
    tags: tuple[str, ...] = ()
    max_crashes: int | None = None

    @classmethod
    def read(cls, text: str | None) -> JobSettings:
        """Decode the column; a job without such options costs nothing."""
        if not text:
            return NO_SETTINGS
        value = stored.fields(text)
        return cls(
            stored.span(value.get("timeout")),
            stored.backoff(value.get("backoff")),
            stored.texts(value.get("tags")),
            stored.count(value.get("max_crashes")),
        )


NO_SETTINGS = JobSettings()


@dataclass(frozen=True, slots=True)
class AttemptError:
    """One failed attempt of a job."""

    attempt: int
    kind: str
    type: str
    message: str
    traceback: str | None
    worker: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as an operator sees it, live or finished."""

    id: str
    queue: str
    task: str
    priority: int
    status: Status
    payload: Any
    result: Any
    unique_key: str | None
    attempts: int
    max_attempts: int
    crashes: int
    worker_id: str | None
    token: int
    tags: tuple[str, ...]
    last_error: str | None
    created_at: datetime
    available_at: datetime | None
    lease_until: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    errors: tuple[AttemptError, ...] = field(default=())
