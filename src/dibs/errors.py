"""Every exception dibs raises, each with its cause and its remedy.

DibsError
├── InvalidInput              a value that can never work: nothing was stored
│   ├── InvalidName           a queue, task or other name outside the allowed letters
│   ├── InvalidOption         an unknown option, or one with a value of the wrong kind
│   │   └── NaiveDatetime     a point in time without a time zone
│   ├── InvalidPayload        arguments that do not fit the task or are not clean JSON
│   └── PayloadTooLarge       more JSON than the limit allows
├── Conflict                  the request is sound, the state of the job or queue does not allow it
│   ├── Duplicate             the unique key belongs to a live job (on_conflict="raise")
│   ├── LeaseLost             somebody else holds the job by now; nothing was written
│   └── WrongStatus           the job is not in a status that allows this action
├── NotFound                  no such job, queue or worker
├── UnknownTask               no task of that name is registered here
├── AppNotFound               the command line could not find or import the application
├── JobFailed                 raised by Handle.result: the job ended without a result
├── ResultTimeout             raised by Handle.result: the job has not ended yet
└── DatabaseError             the database refused or could not be used
    ├── DatabaseUnreachable   no connection, or it broke on the way
    ├── DatabaseMissing       the server has no such database, or there is no such file
    ├── DatabaseTooOld        the server, or the SQLite inside Python, lacks what dibs needs
    ├── NoRights              the database role may not do this
    ├── DriverMissing         the Python driver for this database is not installed
    ├── SchemaOutdated        dibs' tables are missing or older than this version needs
    ├── SchemaTooNew          the tables were made by a newer, incompatible version
    ├── WrongDatabase         the connection given is not to the database of this Dibs
    └── InvalidURL            the database URL cannot be understood
"""

from __future__ import annotations

from typing import Any


class DibsError(Exception):
    """Base of all errors of dibs. `cause` says what is wrong, `remedy` what to do about it."""

    default_remedy = ""

    def __init__(self, cause: str, remedy: str = "", **data: Any) -> None:
        self.cause = cause
        self.remedy = remedy or self.default_remedy
        self.data = data
        super().__init__(f"{cause} {self.remedy}".strip())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.cause, self.remedy, self.data)


def _rebuild(kind: type[DibsError], cause: str, remedy: str, data: dict[str, Any]) -> DibsError:
    return kind(cause, remedy, **data)


class InvalidInput(DibsError, ValueError):
    """A value that can never work. Nothing was stored."""


class InvalidName(InvalidInput):
    """A name outside the allowed letters."""

    default_remedy = "Use 1 to 63 of the characters A-Z a-z 0-9 _ . - only."


class InvalidOption(InvalidInput):
    """An unknown option, or one with a value of the wrong kind."""


class NaiveDatetime(InvalidOption):
    """A point in time without a time zone: it could mean any of 38 instants."""

    default_remedy = "Use datetime.now(timezone.utc) or attach a zoneinfo.ZoneInfo."


class InvalidPayload(InvalidInput):
    """Arguments that do not fit the task's signature, or are not clean JSON."""


class PayloadTooLarge(InvalidInput):
    """More JSON than the limit allows."""

    default_remedy = "Store the data elsewhere and pass a reference, or raise the limit with Dibs(payload_limit=...)."


class Conflict(DibsError):
    """The request is sound, but the state of the job does not allow it."""


class Duplicate(Conflict):
    """The unique key belongs to a live job."""

    default_remedy = 'Wait until it has ended, or choose on_conflict="existing" or "replace".'


class LeaseLost(Conflict):
    """Somebody else holds the job by now. Nothing was written."""

    default_remedy = "Drop the work: the job runs again elsewhere, or was ended by somebody else."


class WrongStatus(Conflict):
    """The job is not in a status that allows this action."""


class NotFound(DibsError, LookupError):
    """No such job, queue or worker."""


class UnknownTask(DibsError, LookupError):
    """No task of that name is registered here."""

    default_remedy = "Import the module that defines it, or register it with jobs.register({...})."


class AppNotFound(DibsError):
    """The command line could not find or import the application."""


class JobFailed(DibsError):
    """The job ended without a result: it is dead, cancelled or discarded."""


class ResultTimeout(DibsError, TimeoutError):
    """The job has not ended within the time given."""

    default_remedy = "Wait longer, or ask handle.status() why it takes so long."


class DatabaseError(DibsError):
    """The database refused, or could not be used."""


class DatabaseUnreachable(DatabaseError, ConnectionError):
    """There is no connection to the database, or it broke on the way."""

    default_remedy = "Check that the server runs and that the URL names the right host, port and password."


class DatabaseMissing(DatabaseError):
    """The server has no database of that name, or there is no such file."""


class DatabaseTooOld(DatabaseError):
    """The server, or the SQLite inside this Python, lacks what dibs needs."""


class NoRights(DatabaseError):
    """The database role may not do this."""

    default_remedy = "Grant this role what it needs, or use another one."


class DriverMissing(DatabaseError, ImportError):
    """The Python driver for this database is not installed."""


class SchemaOutdated(DatabaseError):
    """dibs' tables are missing, or older than this version needs."""

    default_remedy = "Run: dibs db migrate"


class SchemaTooNew(DatabaseError):
    """The tables were made by a newer, incompatible version of dibs."""

    default_remedy = "Upgrade dibs on this machine."


class WrongDatabase(DatabaseError):
    """The connection given is not to the database of this Dibs."""


class InvalidURL(DatabaseError, ValueError):
    """The database URL cannot be understood."""

    default_remedy = (
        "Write postgresql://user:password@host:5432/database (or mysql://, mariadb://), sqlite:///path/to/file.db or "
        "sqlite:// (memory)."
    )
