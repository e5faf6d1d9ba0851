"""What MySQL and MariaDB say when something is wrong, in dibs' words."""

from __future__ import annotations

from dibs.errors import (
    Conflict,
    DatabaseError,
    DatabaseMissing,
    DatabaseUnreachable,
    DibsError,
    NoRights,
    SchemaOutdated,
)

_QUOTES = "'`\""
GONE = frozenset({1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2005, 2006, 2012, 2013, 2055})
"""No server, or it has ended this connection. 1927, 3169 and 4031 it says itself: killed, or idle for too long."""
ENDED = GONE | {1047, 1180, 3169, 4031}
"""And a node of a Galera cluster that is no member (1047), or was none any more at a commit (1180): another must be
asked. What became of that commit is not known."""
_MISSING = frozenset({1046, 1054, 1146, 1305, 1356})
"""No database chosen, no such column, table, function; a view of what is not there."""
_LOGIN = frozenset({1045, 1130, 1251, 1524, 1698, 1820, 1862, 2059, 2061, 3118, 3159})
_RIGHTS = frozenset({1044, 1142, 1143, 1227, 1370, 1410})
_CROWDED = frozenset({1040, 1129, 1203, 1226})
_EXHAUSTED = frozenset({3, 1021, 1030, 1037, 1038, 1041, 1114, 1135, 1180, 1206})
_REPLAY = frozenset({1020, 1062, 1205, 1213})
"""A row that changed after the snapshot, a key or id that somebody took this very moment, a lock not had, deadlock."""
_DATA = frozenset(
    {*(1048, 1062, 1118, 1153, 1216, 1217, 1264, 1265, 1292, 1364, 1366, 1406, 1451, 1452), *(3140, 3819, 4025)}
)
"""Bad values, broken constraints, more than a column or a packet can hold."""


def code(error: BaseException) -> int | None:
    """The number of an error of PyMySQL, mysqlclient, aiomysql, asyncmy or SQLAlchemy."""
    original = getattr(error, "orig", None) or error
    first = original.args[0] if original.args else None
    known = isinstance(first, int) and any(kind.__name__ in ("Error", "MySQLError") for kind in type(original).__mro__)
    return first if known else None


def replayable(error: BaseException) -> bool:
    """Whether a transaction that met this error may be played again at once."""
    return code(error) in _REPLAY


def refuses(error: BaseException) -> bool:
    """Whether the data itself is refused."""
    return code(error) in _DATA


def explain(error: BaseException) -> DibsError | None:
    """An error of the driver in dibs' words, or None if it is not dibs' to explain."""
    number = code(error)
    if number is None:
        return None
    text = _message(error)
    return _about_tables(number, text) or _about_locks(number, text) or _about_the_server(number, text)


def _about_tables(number: int, text: str) -> DibsError | None:
    if number in _MISSING and ("dibs_" in text or number in (1046, 1054)):
        return SchemaOutdated(f"This database lacks tables that dibs needs: {text}.")
    if number == 1062 and ("dibs_" in text or "PRIMARY" in text):
        return Conflict(f"A live job has this id or unique key already: {text}.", "Look at that job, then try again.")
    if number == 1049:
        return DatabaseMissing(f"{text}.", f"Create it first: create database {text.rpartition(' ')[2].strip(_QUOTES)}")
    return None


def _about_locks(number: int, text: str) -> DibsError | None:
    """Transactions of dibs' own are played again; these words are for those of callers."""
    if number == 1213:
        return DatabaseError(
            f"{text}. The server has ended the wait by rolling back this whole transaction, also what was done before.",
            "Begin the transaction again from its first statement.",
        )
    if number == 1205:
        return DatabaseError(
            f"{text}. Another transaction has held a lock for longer than innodb_lock_wait_timeout; what this "
            "transaction did before is still there.",
            "Try this statement again, or roll back; keep transactions that write short.",
        )
    if number == 1020:
        return DatabaseError(
            f"{text}. The job was changed by somebody else after this transaction had taken its snapshot.",
            "Roll back and begin again, or work at READ COMMITTED.",
        )
    return None


def _about_the_server(number: int, text: str) -> DibsError | None:
    if number in _LOGIN:
        return DatabaseUnreachable(f"The server refused the login: {text}.", "Check user and password in the URL.")
    if number in _RIGHTS:
        return NoRights(f"{text}.")
    if number in (1290, 1792, 1836) and "read" in text.lower():
        return DatabaseUnreachable(f"The server is read-only (a replica?): {text}.", "Connect to the primary.")
    if number in (1047, 1180) and ("WSREP" in text or "provider status" in text):
        return DatabaseUnreachable(f"This node is not in a working cluster: {text}.", "List all nodes in the URL.")
    if number in _EXHAUSTED:
        return DatabaseUnreachable(f"The server cannot work: {text}.", "Look at its disk, its memory and its log.")
    if number in ENDED or number in _CROWDED:
        return DatabaseUnreachable(f"The server cannot be reached: {text}.")
    if number == 1153:
        return DatabaseError(f"{text}.", "Raise max_allowed_packet on the server, or send less at once.")
    return None


def _message(error: BaseException) -> str:
    """What the server says, on one line."""
    original = getattr(error, "orig", None) or error
    said = original.args[1] if len(original.args) > 1 else error
    return " ".join(str(said).split())[:500].rstrip(".?")
