"""SQLite 3.38 and later: a file beside the application, or memory. One writer at a time, in WAL mode."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dibs.errors import DatabaseError, DatabaseTooOld, DatabaseUnreachable, DibsError, InvalidURL, SchemaOutdated
from dibs.store import fork
from dibs.store.dialect import Can, Clock, Dialect, json_array, json_columns
from dibs.store.migrators import SqliteMigrator
from dibs.store.sessions.sqlite import OwnSqliteSession

OLDEST = (3, 38, 0)
BUSY_SECONDS = 30.0
REST_SECONDS = 1.0
"""How long a fork waits for what other threads are doing. What takes longer waits for another program's lock."""
_BELL_PAUSE = 0.004
CAN = Can(
    load_in_bulk=False,
    ring_sleepers=False,
    make_its_own_tables=True,
)


def wall_clock() -> int:
    """This machine's clock: the one all processes of a SQLite file share."""
    return time.time_ns() // 1000


def dialect(clock: Clock | None = None) -> Dialect:
    """SQLite's way; `clock` is for tests that own the time."""
    return Dialect(
        name="sqlite",
        title="SQLite",
        can=CAN,
        now=None,
        array=json_array,
        columns=json_columns,
        explain=explain,
        replayable=_busy,
        refuses=_refuses,
        begin="begin immediate",
        clock=clock or wall_clock,
    )


class _Connection(sqlite3.Connection):
    """One that can be referred to weakly."""


class SqliteDatabase:
    """One SQLite file. `sqlite://` alone is a database in memory, shared by the threads of this process."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise DatabaseTooOld(
                f"This Python brings SQLite {sqlite3.sqlite_version}.",
                "dibs needs 3.38 or later: use a newer Python, or another database.",
            )
        self.path = _path(url)
        self.audible = self.path is not None
        self.shown_url = f"sqlite:///{self.path}" if self.path else "sqlite://"
        self.dialect = dialect(clock)
        self._turn = threading.RLock()
        self._hush = threading.Lock()
        self._resting: list[threading.Lock | threading.RLock] = []
        self._opened: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._memory = None if self.path else self._open()
        fork.watch(self, SqliteDatabase._renew, SqliteDatabase._rest, SqliteDatabase._go_on)

    def connect(self) -> OwnSqliteSession:
        """A new connection in autocommit mode; to a database in memory there is only one, used in turns."""
        return OwnSqliteSession(self._memory or self._open(), self.dialect, self._turn, shared=not self.path)

    def is_at(self, place: str) -> bool:
        """Whether that file is this one."""
        return bool(self.path and place) and os.path.realpath(place) == os.path.realpath(self.path or "")

    def exists(self) -> bool:
        """Whether the file is there; connecting would make it."""
        return self.path is None or self.path.exists()

    def pooled(self, _session: OwnSqliteSession) -> bool:
        """Nothing stands between a program and its file."""
        return False

    def migrator(self, session: OwnSqliteSession) -> SqliteMigrator:
        """Who changes the tables."""
        return SqliteMigrator(session.connection)

    def bell(self) -> SqliteBell | None:
        """A connection that sees when another one has committed; nobody else can see into memory."""
        return SqliteBell(self._open(), self._hush) if self.path else None

    def _rest(self) -> None:
        """Before a fork: let no thread be in the middle of anything, for the child would inherit it half done."""
        self._resting = [lock for lock in (self._turn, self._hush) if lock.acquire(timeout=REST_SECONDS)]

    def _go_on(self) -> None:
        for lock in self._resting:
            lock.release()

    def _renew(self) -> None:
        """In a forked child: locks of its own, and no connection of the parent's.

        SQLite keeps the locks that a process has on a file in its memory, and a fork copies that, but not the locks:
        beside an inherited connection a new one waits for ever, or writes to a log that the parent deletes. So they
        are closed, and all is as if they had never been. One in the middle of something must be left as it is.
        """
        for connection in list(self._opened) if len(self._resting) == 2 else ():
            if not connection.in_transaction:
                connection.close()
        self._turn, self._hush = threading.RLock(), threading.Lock()
        self._opened = weakref.WeakSet()

    def _open(self) -> sqlite3.Connection:
        with self._hush:
            connection = self._connected()
            if self.path:
                self._opened.add(connection)
        return connection

    def _connected(self) -> _Connection:
        place = str(self.path or ":memory:")
        try:
            connection = sqlite3.connect(
                place,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=_Connection,
            )
            if self.path:
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = full")
                connection.execute("pragma wal_autocheckpoint = 4000")
        except sqlite3.Error as error:
            raise explain(error) or DatabaseUnreachable(f"{place}: {error}.") from error
        return connection


class SqliteBell:
    """Watches the data version, a number in shared memory that every commit of another connection changes."""

    def __init__(self, connection: sqlite3.Connection, hush: threading.Lock) -> None:
        self._connection = connection
        self._hush = hush
        self._seen = self._version()

    def wait(self, seconds: float) -> bool:
        """Wait for a commit."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            time.sleep(_BELL_PAUSE)
        return False

    def _version(self) -> int:
        with self._hush:
            row: tuple[int] = self._connection.execute("pragma data_version").fetchone()
        return row[0]

    def close(self) -> None:
        """Stop watching."""
        with self._hush:
            self._connection.close()


def _path(url: str) -> Path | None:
    """The file of a URL: sqlite:///relative.db, sqlite:////absolute.db, sqlite:// for memory."""
    parts = urlsplit(url)
    if parts.netloc:
        raise InvalidURL(f"{url!r} names a host, but SQLite is a file.", "Write sqlite:/// with three slashes.")
    if "?" in url or "#" in url:
        raise InvalidURL(
            f"{url!r}: a SQLite URL has no options.", "In the name of a file write %3F for ? and %23 for #."
        )
    if not parts.path or parts.path == "/" or parts.path == "/:memory:":
        return None
    path = Path(unquote(parts.path[1:])).expanduser()
    return path if path.is_absolute() else Path.cwd() / path


def _busy(error: BaseException) -> bool:
    """Refused at once, by a snapshot or a recovery; after a plain SQLITE_BUSY we have waited long enough already."""
    original = getattr(error, "orig", None) or error
    if not isinstance(original, sqlite3.OperationalError) or "locked" not in str(original):
        return False
    return getattr(original, "sqlite_errorcode", sqlite3.SQLITE_BUSY) != sqlite3.SQLITE_BUSY


def _refuses(error: BaseException) -> bool:
    """Broken constraints, bad values, more than SQLite can hold."""
    original = getattr(error, "orig", None) or error
    if isinstance(original, (sqlite3.IntegrityError, sqlite3.InterfaceError, OverflowError)):
        return True
    return getattr(original, "sqlite_errorcode", None) in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH)


def explain(error: BaseException) -> DibsError | None:
    """An error of sqlite3 in dibs' words, or None if it is not dibs' to explain."""
    original = getattr(error, "orig", None) or error
    if not isinstance(original, sqlite3.Error):
        return None
    text = str(original)
    if "no such table: dibs_" in text or "no such column" in text:
        return SchemaOutdated(f"This SQLite file lacks what dibs needs: {text}.")
    if "locked" in text or "busy" in text:
        return DatabaseUnreachable(
            f"Another program has held the SQLite file's write lock for {BUSY_SECONDS:.0f} seconds.",
            "Commit or roll back its transaction; keep writing transactions short.",
        )
    if "unable to open" in text:
        return DatabaseUnreachable(
            f"The SQLite file cannot be opened: {text}.",
            f"Check that its folder exists and that user {os.getuid() if hasattr(os, 'getuid') else ''} may write.",
        )
    if "not a database" in text or "malformed" in text:
        return DatabaseError(f"This is no healthy SQLite file: {text}.", "Check the path, or restore a backup.")
    if "full" in text or "disk I/O" in text or "readonly" in text:
        return DatabaseUnreachable(f"SQLite cannot write: {text}.", "Check free space and permissions.")
    return None
