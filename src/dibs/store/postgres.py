"""PostgreSQL 14 and later: connecting, its errors in words, and the bell (LISTEN)."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from dibs.errors import (
    Conflict,
    DatabaseMissing,
    DatabaseTooOld,
    DatabaseUnreachable,
    DibsError,
    DriverMissing,
    InvalidURL,
    NoRights,
    SchemaOutdated,
)
from dibs.store.bulk import COPY
from dibs.store.dialect import Can, Clock, Dialect, pg_array, pg_columns
from dibs.store.migrators import PostgresMigrator
from dibs.store.server_url import take_apart
from dibs.store.sessions.psycopg import OwnPsycopgSession

if TYPE_CHECKING:
    import psycopg

OLDEST = 140000
_CONNECT = {
    "application_name": "dibs",
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "target_session_attrs": "read-write",
    "client_encoding": "utf8",
}
_DATA = frozenset({"22", "23", "54"})
"""Classes of SQLSTATE: bad values, broken constraints, more than the server can hold."""
_MISSING = frozenset({"42P01", "3F000", "42703", "42883"})
_REPLAY = frozenset({"40P01", "40001", "55P03", "23505"})
"""Deadlock, serialisation, a lock not had, and a key or id that somebody took this very moment."""
_NO_DATABASE = re.compile(r'FATAL: +database ".+" does not exist')
"""While connecting, libpq gives no SQLSTATE, only the server's words."""
CAN = Can(
    load_in_bulk=True,
    ring_sleepers=True,
    make_its_own_tables=False,
)


def dialect(clock: Clock | None = None) -> Dialect:
    """PostgreSQL's way; `clock` is for tests that own the time."""
    return Dialect(
        name="postgres",
        title="PostgreSQL",
        can=CAN,
        now="statement_timestamp()" if clock is None else "dibs.instant(cast(:now as bigint))",
        array=pg_array,
        columns=pg_columns,
        explain=explain,
        replayable=lambda error: _sqlstate(error) in _REPLAY,
        refuses=lambda error: (_sqlstate(error) or "")[:2] in _DATA,
        begin="begin isolation level read committed",
        form=COPY,
        clock=clock,
    )


class PostgresDatabase:
    """One PostgreSQL database. `?pooler=transaction` in the URL: no LISTEN, no prepared statements."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        parts = take_apart(url)
        self.pooler = parts.options.get("pooler")
        if self.pooler not in (None, "transaction"):
            raise InvalidURL(f"pooler={self.pooler!r} is unknown.", "Write ?pooler=transaction or leave it out.")
        self.audible = self.pooler is None
        self.shown_url = parts.shown("postgresql")
        self.dialect = dialect(clock)
        self._name = parts.options.get("dbname") or parts.database
        self._url = _for_libpq(url, parts.options)
        self._extra: dict[str, Any] = {name: value for name, value in _CONNECT.items() if name not in parts.options}

    def connect(self) -> OwnPsycopgSession:
        """A new connection in autocommit mode; refuses a server that is too old."""
        connection = self._open()
        version = connection.info.server_version
        if version < OLDEST:
            connection.close()
            raise DatabaseTooOld(f"The server is PostgreSQL {version // 10000}.", "dibs needs 14 or later.")
        session = OwnPsycopgSession(connection, self.dialect)
        level = connection.execute("show default_transaction_isolation").fetchone()
        session.explicit = level != ("read committed",)
        return session

    def is_at(self, place: str) -> bool:
        """Whether a database of that name can be this one; the same name on another server cannot be told."""
        return not self._name or place == self._name

    def exists(self) -> bool:
        """A server does not make databases by itself: connecting tells."""
        return True

    def pooled(self, session: OwnPsycopgSession) -> bool:
        """Whether a pooler stands in between: it tells clients a process number of its own making."""
        real = session.connection.execute("select pg_backend_pid()").fetchone()
        return real != (session.connection.info.backend_pid,)

    def migrator(self, session: OwnPsycopgSession) -> PostgresMigrator:
        """Who changes the tables."""
        return PostgresMigrator(session.connection)

    def bell(self) -> PostgresBell | None:
        """A connection that listens, unless a transaction pooler stands in between."""
        return None if self.pooler else PostgresBell(self._open())

    def _open(self) -> psycopg.Connection[Any]:
        try:
            import psycopg
        except ImportError as error:
            raise DriverMissing(
                "The driver for PostgreSQL, psycopg, is not installed.", "Run: pip install 'dibs[postgres]'"
            ) from error
        try:
            connection: psycopg.Connection[Any] = psycopg.connect(
                self._url,
                autocommit=True,
                prepare_threshold=None if self.pooler else 5,
                **self._extra,
            )
        except psycopg.Error as error:
            raise explain(error) or DatabaseUnreachable(f"{error}") from error
        return connection


class PostgresBell:
    """Hears `notify dibs`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        connection.execute("listen dibs")

    def wait(self, seconds: float) -> bool:
        """Wait for a ring; drains what has piled up, so that the server never queues for this listener."""
        deadline = time.monotonic() + seconds
        rung = any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))
        if not rung and time.monotonic() < deadline - 1:
            raise DatabaseUnreachable("The listening connection ended early.")
        return rung

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def _sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of an error of psycopg, asyncpg or SQLAlchemy."""
    original = getattr(error, "orig", None) or error
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    return str(state) if state else None


def explain(error: BaseException) -> DibsError | None:
    """An error of the driver in dibs' words, or None if it is not dibs' to explain."""
    state = _sqlstate(error)
    text = _message(error)
    if state in _MISSING and "dibs" in text:
        return SchemaOutdated(f"This database lacks tables that dibs needs: {text}.")
    if state == "23505" and "job_" in text:
        return Conflict(f"A live job has this id or unique key already: {text}.", "Look at that job, then try again.")
    if state == "3D000" or (state is None and _NO_DATABASE.search(text)):
        return DatabaseMissing(f"{text}.", "Create it first: createdb NAME")
    if state in ("28P01", "28000"):
        return DatabaseUnreachable(f"The server refused the login: {text}.", "Check user and password in the URL.")
    if state == "42501":
        return NoRights(f"{text}.")
    if state == "25006":
        return DatabaseUnreachable("The server is read-only (a standby?).", "Connect to the primary.")
    if state is None and type(error).__name__ in ("OperationalError", "ConnectionTimeout", "InterfaceError"):
        return DatabaseUnreachable(f"PostgreSQL cannot be reached: {text}.")
    if state is not None and (state[:2] == "08" or state in ("57P01", "57P02", "57P03", "57P04", "57P05", "53300")):
        return DatabaseUnreachable(f"The connection to PostgreSQL ended: {text}.")
    if state is not None and state[:2] in ("53", "58"):
        return DatabaseUnreachable(f"PostgreSQL cannot work: {text}.", "Look at its disk, its memory and its log.")
    return None


def _message(error: BaseException) -> str:
    """What the server says, without the excerpt of the statement; it has told us which one that is."""
    original = getattr(error, "orig", None) or error
    primary = getattr(getattr(original, "diag", None), "message_primary", None)
    return " ".join(str(primary or error).split())[:500].rstrip(".?")


def _for_libpq(url: str, options: dict[str, str]) -> str:
    """The URL as libpq reads it: without what only dibs understands, and with its options escaped as libpq wants."""
    rest = url.partition("://")[2].partition("?")[0]
    theirs = {name: value for name, value in options.items() if name != "pooler"}
    return f"postgresql://{rest}?{urlencode(theirs, quote_via=quote)}".rstrip("?")
