"""The store as the rest of dibs uses it: call an operation, on a connection of dibs' own or of the caller."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, TypeVar

from dibs.errors import DatabaseUnreachable, InvalidURL, SchemaOutdated, WrongDatabase
from dibs.store import fork
from dibs.store.dialect import Bell, Clock, Dialect
from dibs.store.migrate import Migrator
from dibs.store.runner import AsyncSession, Operation, Session, arun, run
from dibs.store.sessions.base import AsyncCallerSession, Manners
from dibs.store.sessions.recognise import recognise

T = TypeVar("T")
_REPLAYS = 16
"""How often a transaction is tried at most. In a storm of deadlocks (chaos/storm.py) one in four tries of one that has
met some meets another: after eight tries one in a few hours still failed."""
_PATIENCE = 60.0
"""Seconds after which none is tried again: each try may have waited for a lock for long."""
_LONGEST_PAUSE = 0.3
_POOL_SIZE = 10


class OwnSession(Session, Protocol):
    """A connection dibs opened itself."""

    @property
    def broken(self) -> bool:
        """Whether the connection is of no more use."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Database(Protocol):
    """One database under one URL."""

    shown_url: str
    audible: bool
    dialect: Dialect

    def connect(self) -> OwnSession:
        """A new connection: each statement commits, unless `begin` was called."""
        ...

    def is_at(self, place: str) -> bool:
        """Whether a connection to this place, a name or a file, is one to this database, as far as one can tell."""
        ...

    def exists(self) -> bool:
        """Whether there is something to connect to, as far as one can tell without connecting."""
        ...

    def pooled(self, session: Any) -> bool:
        """Whether a connection pooler stands between us and the server."""
        ...

    def migrator(self, session: Any) -> Migrator:
        """Who changes the tables, over a connection that `connect` made."""
        ...

    def bell(self) -> Bell | None:
        """A connection that hears other programs' commits, where the database can tell."""
        ...


_DATABASES = {
    "postgresql": ("postgres", "PostgresDatabase"),
    "postgres": ("postgres", "PostgresDatabase"),
    "sqlite": ("sqlite", "SqliteDatabase"),
    "mysql": ("mysql", "MysqlDatabase"),
    "mariadb": ("mysql", "MariadbDatabase"),
}
"""Scheme of a URL: the module beside this one, and the class in it. Loaded when a URL asks for it, not before."""


def open_database(url: str, clock: Clock | None = None) -> Database:
    """The database a URL names. Nothing is connected yet."""
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme not in _DATABASES:
        raise InvalidURL(f"{scheme or url!r} is not a database dibs knows.")
    module, name = _DATABASES[scheme]
    database: Database = getattr(import_module(f"dibs.store.{module}"), name)(url, clock)
    return database


class _InWords:
    """Errors of the driver in dibs' words, where it has some. A class, for every call of the store enters it."""

    def __init__(self, dialect: Dialect) -> None:
        self._explain = dialect.explain

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        explained = self._explain(error) if isinstance(error, Exception) else None
        if explained is not None:
            raise explained from error


class Store:
    """Calls operations. Safe to use from any thread; connections are pooled, each process has its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.dialect = database.dialect
        self._in_words = _InWords(self.dialect)
        self.listeners: list[Callable[[], None]] = []
        self._idle: list[OwnSession] = []
        self._inherited: list[OwnSession] = []
        self._lock = threading.Lock()
        fork.watch(self, Store._renew)

    def call(self, make: Callable[[], Operation[T]], again: Callable[[], Operation[T]] | None = None) -> T:
        """Run an operation in a transaction of its own, once more after a deadlock or a broken idle connection.

        `again` makes what is run then, where it must know that the first may have been carried out already.
        """
        deadline = time.monotonic() + _PATIENCE
        with self._in_words:
            for replay in range(_REPLAYS):
                session, reused = self._take()
                try:
                    return run(session, make())
                except Exception as error:
                    tired = replay + 1 == _REPLAYS or time.monotonic() > deadline
                    if tired or not self._worth_replaying(error, session, reused):
                        raise
                finally:
                    self._give_back(session)
                make = again or make
                if session.broken:
                    self.close()  # what ended this connection has probably ended the other idle ones
                time.sleep(random.uniform(0.001, min(_LONGEST_PAUSE, 0.01 * 2**replay)))
        raise AssertionError("unreachable")

    def ring(self) -> None:
        """Tell the workers of this process that jobs were enqueued."""
        for listener in self.listeners:
            listener()

    def call_on(self, connection: Any, operation: Operation[T]) -> T:
        """Run an operation as a part of the caller's transaction. Never replayed: that is the caller's to do."""
        session = recognise(connection, self.dialect)
        if isinstance(session, AsyncSession):
            raise WrongDatabase(
                "The connection given is asynchronous, the call is not.",
                "Use the method with an a in front, for example aenqueue.",
            )
        self._refuse_elsewhere(session.place() if isinstance(session, Manners) else None)
        with self._in_callers_words():
            return run(session, operation)

    async def acall_on(self, connection: Any, operation: Operation[T]) -> T:
        """`call_on`, for a connection of either kind."""
        session = recognise(connection, self.dialect)
        with self._in_callers_words():
            if isinstance(session, AsyncCallerSession):
                self._refuse_elsewhere(await session.aplace())
            elif isinstance(session, Manners):
                self._refuse_elsewhere(session.place())
            if isinstance(session, AsyncSession):
                return await arun(session, operation)
            return run(session, operation)

    def _refuse_elsewhere(self, place: str | None) -> None:
        if place is not None and not self.database.is_at(place):
            given = place or "a database in memory"
            raise WrongDatabase(
                f"The connection given is to {given}, but the jobs are in {self.database.shown_url}.",
                "Pass a connection to that database. If a pooler has two names for it, use one of them for both.",
            )

    def on_session(self, work: Callable[[OwnSession], T]) -> T:
        """Do something with a connection of dibs' own, and again if that was an idle one that has broken meanwhile."""
        with self._in_words:
            while True:
                with self.session() as (session, reused):
                    try:
                        return work(session)
                    except Exception:
                        if not (session.broken and reused):
                            raise
                self.close()

    @contextmanager
    def session(self) -> Iterator[tuple[OwnSession, bool]]:
        """A pooled connection, and whether it has been used before."""
        session, reused = self._take()
        try:
            yield session, reused
        finally:
            self._give_back(session)

    def close(self) -> None:
        """Close the idle connections. The store can be used again afterwards."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    def _renew(self) -> None:
        """In a forked child: the connections are the parent's, and so are the workers to be rung."""
        self._lock = threading.Lock()
        self._inherited += self._idle  # kept, for to let go of a connection is to end it, in the parent too
        self._idle, self.listeners = [], []

    def _take(self) -> tuple[OwnSession, bool]:
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        return self.database.connect(), False

    def _give_back(self, session: OwnSession) -> None:
        with self._lock:
            if not session.broken and len(self._idle) < _POOL_SIZE:
                self._idle.append(session)
                return
        session.close()

    def _worth_replaying(self, error: BaseException, session: OwnSession, reused: bool) -> bool:
        return self.dialect.replayable(error) or (session.broken and reused)

    @contextmanager
    def _in_callers_words(self) -> Iterator[None]:
        """The same on a caller's connection: where dibs' tables are missing, it may be the wrong database."""
        try:
            with self._in_words:
                yield
        except SchemaOutdated as error:
            raise WrongDatabase(
                "The connection given is to a database without dibs' tables.",
                f"Pass a connection to {self.database.shown_url}; if it is one, run: dibs db migrate",
            ) from error


def unreachable(error: BaseException) -> bool:
    """Whether a service should wait for the database instead of giving up."""
    return isinstance(error, DatabaseUnreachable)
