"""dibs: a durable job queue that lives in the database your application already has."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOMES = {
    "dibs.door.dibs": ("Dibs",),
    "dibs.door.handle": ("Handle",),
    "dibs.door.task": ("AsyncTask", "Task"),
    "dibs.errors": ("DibsError", "LeaseLost"),
    "dibs.model.backoff": ("Backoff",),
    "dibs.model.job": ("Job", "NewJob"),
    "dibs.model.outcome": ("Cancel", "Discard", "Retry", "Snooze"),
    "dibs.model.status": ("Priority", "Status"),
    "dibs.worker.attempt": ("current_job",),
}


def __getattr__(name: str) -> object:
    """Load a name at its first use: `dibs --help` would otherwise wait for drivers, asyncio and JSON it never needs."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            found: object = getattr(import_module(module), name)
            globals()[name] = found
            return found
    if name == "errors":
        return import_module("dibs.errors")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
