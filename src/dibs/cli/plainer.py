"""What drivers say when there is no connection, in fewer words: where, what, and what to do about it."""

from __future__ import annotations

import re

from dibs.errors import DatabaseMissing, DatabaseUnreachable, DibsError, InvalidURL

_DRIVER = re.compile(r"'((\w+)\+\w+)' is not a database")
_REFUSED = re.compile(r"authentication failed|no password supplied|role .* does not exist|no pg_hba\.conf entry")
_MISSING = re.compile(r'database "([^"]+)" does not exist')
_SHORTER = (
    (re.compile(r'connection to server (?:at|on socket) "([^"]*)"(?: \([^)]*\))?, port (\d+) failed: '), r"\1:\2: "),
    (re.compile(r"^The server refused the login: "), ""),
    (re.compile(r"connection failed: |FATAL: +| Create it first: createdb NAME"), ""),
    (re.compile(r"\s+Is the server running [^.]*"), ""),
)


def plainer(error: DibsError) -> DibsError:
    """The error, or a plainer one of the same kind."""
    from dibs.cli.problems import problem

    driver = isinstance(error, InvalidURL) and _DRIVER.search(error.cause)
    if driver:
        return problem(InvalidURL, "url-with-driver", given=driver[1], plain=driver[2])
    if not isinstance(error, (DatabaseUnreachable, DatabaseMissing)) or error.data.get("told"):
        return error
    cause = error.cause.strip()
    for pattern, shorter in _SHORTER:
        cause = pattern.sub(shorter, cause)
    cause = cause.rstrip(".") + "."
    if _REFUSED.search(cause):
        detail = cause.removeprefix("PostgreSQL cannot be reached: ").rstrip(".")
        return problem(DatabaseUnreachable, "login-refused", detail=detail)
    missing = _MISSING.search(cause)
    remedy = error.remedy.replace("NAME", missing[1]) if missing else error.remedy
    return type(error)(cause, remedy, **error.data)
