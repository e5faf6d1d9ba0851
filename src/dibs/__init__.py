"""dibs: a durable job queue that lives in the database your application already has."""

from dibs.door.dibs import Dibs
from dibs.door.handle import Handle
from dibs.door.task import AsyncTask, Task
from dibs.errors import DibsError, LeaseLost
from dibs.model.backoff import Backoff
from dibs.model.job import Job, NewJob
from dibs.model.outcome import Cancel, Discard, Retry, Snooze
from dibs.model.status import Priority, Status
from dibs.worker.attempt import current_job

__all__ = [
    "AsyncTask",
    "Backoff",
    "Cancel",
    "Dibs",
    "DibsError",
    "Discard",
    "Handle",
    "Job",
    "LeaseLost",
    "NewJob",
    "Priority",
    "Retry",
    "Snooze",
    "Status",
    "Task",
    "current_job",
]
__version__ = "0.1.0"
