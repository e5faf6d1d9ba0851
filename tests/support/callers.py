"""Every kind of connection a caller may bring, behind one face: what a test says once is run on all of them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import aiosqlite
import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from dibs import Dibs, Handle, NewJob
from tests.support import notices
from tests.support.databases import Database

T = TypeVar("T")
ORDERS = "create table if not exists orders (number integer primary key)"


class Caller:
    """A connection of the caller's own, in a transaction of the caller's own."""

    asynchronous = False

    def __init__(self, database: Database) -> None:
        self.database = database
        self.given: Any = self.open()

    def open(self) -> Any:
        """Connect and begin a transaction; answers what is handed to dibs."""
        raise NotImplementedError

    def execute(self, text: str) -> None:
        """Run a statement of the application."""
        raise NotImplementedError

    def commit(self) -> None:
        """Commit the transaction."""
        raise NotImplementedError

    def rollback(self) -> None:
        """Roll the transaction back."""
        raise NotImplementedError

    def close(self) -> None:
        """Disconnect."""
        raise NotImplementedError

    def enqueue(self, jobs: Dibs, task: str, payload: Any = None, **options: Any) -> Handle[Any]:
        """Enqueue by name inside the transaction."""
        return jobs.enqueue(task, payload, connection=self.given, **options)

    def enqueue_many(self, jobs: Dibs, batch: Sequence[NewJob]) -> list[Handle[Any]]:
        """Enqueue many inside the transaction."""
        return jobs.enqueue_many(batch, connection=self.given)


class Psycopg(Caller):
    """psycopg.Connection."""

    def open(self) -> Any:
        return notices.watch(psycopg.connect(self.database.url))

    def execute(self, text: str) -> None:
        self.given.execute(text.encode())

    def commit(self) -> None:
        self.given.commit()

    def rollback(self) -> None:
        self.given.rollback()

    def close(self) -> None:
        self.given.close()


class Sqlite3(Psycopg):
    """sqlite3.Connection, as `sqlite3.connect(path)` makes it."""

    def open(self) -> Any:
        return sqlite3.connect(self.database.url.removeprefix("sqlite:///"), timeout=10)

    def execute(self, text: str) -> None:
        self.given.execute(text)


class SqlAlchemy(Psycopg):
    """sqlalchemy.Connection over psycopg or sqlite3."""

    def open(self) -> Any:
        self.engine = sqlalchemy.create_engine(_sync_url(self.database.url), poolclass=sqlalchemy.NullPool)
        event.listen(self.engine, "connect", lambda connection, _record: notices.watch(connection))
        return self.engine.connect()

    def execute(self, text: str) -> None:
        self.given.execute(sqlalchemy.text(text))

    def close(self) -> None:
        self.given.close()
        self.engine.dispose()


class SqlAlchemySession(SqlAlchemy):
    """sqlalchemy.orm.Session."""

    def open(self) -> Any:
        super().open().close()
        return Session(self.engine)


class AsyncCaller(Caller):
    """The same for connections that must be awaited: the test itself stays synchronous."""

    asynchronous = True

    def __init__(self, database: Database) -> None:
        self.runner = asyncio.Runner()
        super().__init__(database)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something on this caller's event loop."""
        return self.runner.run(work)

    def open(self) -> Any:
        return self.run(self.aopen())

    async def aopen(self) -> Any:
        """Connect and begin a transaction."""
        raise NotImplementedError

    def execute(self, text: str) -> None:
        self.run(self.given.execute(text))

    def commit(self) -> None:
        self.run(self.given.commit())

    def rollback(self) -> None:
        self.run(self.given.rollback())

    def close(self) -> None:
        self.run(self.aclose())
        self.runner.close()

    async def aclose(self) -> None:
        """Disconnect."""
        await self.given.close()

    def connect_again_if_lost(self) -> None:
        """For drivers that end a connection when a task that used it is cancelled."""

    def enqueue(self, jobs: Dibs, task: str, payload: Any = None, **options: Any) -> Handle[Any]:
        return self.run(jobs.aenqueue(task, payload, connection=self.given, **options))

    def enqueue_many(self, jobs: Dibs, batch: Sequence[NewJob]) -> list[Handle[Any]]:
        return self.run(jobs.aenqueue_many(batch, connection=self.given))


class PsycopgAsync(AsyncCaller):
    """psycopg.AsyncConnection."""

    async def aopen(self) -> Any:
        return notices.watch(await psycopg.AsyncConnection.connect(self.database.url))


class Asyncpg(AsyncCaller):
    """asyncpg.Connection."""

    async def aopen(self) -> Any:
        connection = notices.watch(await self.connect())
        self.transaction = connection.transaction()
        await self.transaction.start()
        return connection

    async def connect(self) -> Any:
        """Connect."""
        return await asyncpg.connect(self.database.url)

    def commit(self) -> None:
        self.run(self._end(self.transaction.commit()))

    def rollback(self) -> None:
        self.run(self._end(self.transaction.rollback()))

    async def _end(self, ending: Coroutine[Any, Any, None]) -> None:
        await ending
        self.transaction = self.given.transaction()
        await self.transaction.start()


class Aiosqlite(AsyncCaller):
    """aiosqlite.Connection."""

    async def aopen(self) -> Any:
        return await aiosqlite.connect(self.database.url.removeprefix("sqlite:///"), timeout=10)


class SqlAlchemyAsync(AsyncCaller):
    """sqlalchemy AsyncConnection over psycopg or aiosqlite."""

    driver = "psycopg"

    async def aopen(self) -> Any:
        url = _async_url(self.database.url, self.driver)
        self.engine = create_async_engine(url, poolclass=sqlalchemy.NullPool)
        event.listen(self.engine.sync_engine, "connect", lambda connection, _record: notices.watch(connection))
        return await self.aconnect()

    async def aconnect(self) -> Any:
        """The connection or session."""
        return await self.engine.connect()

    def execute(self, text: str) -> None:
        self.run(self.given.execute(sqlalchemy.text(text)))

    async def aclose(self) -> None:
        await self.given.close()
        await self.engine.dispose()


class SqlAlchemyAsyncSession(SqlAlchemyAsync):
    """sqlalchemy AsyncSession over psycopg or aiosqlite."""

    async def aconnect(self) -> Any:
        return AsyncSession(self.engine)


class SqlAlchemyAsyncpg(SqlAlchemyAsync):
    """sqlalchemy AsyncConnection over asyncpg."""

    driver = "asyncpg"


class SqlAlchemyAsyncpgSession(SqlAlchemyAsyncSession):
    """sqlalchemy AsyncSession over asyncpg."""

    driver = "asyncpg"


ON_POSTGRES: tuple[Callable[[Database], Caller], ...] = (
    Psycopg,
    PsycopgAsync,
    Asyncpg,
    SqlAlchemy,
    SqlAlchemySession,
    SqlAlchemyAsync,
    SqlAlchemyAsyncSession,
    SqlAlchemyAsyncpg,
    SqlAlchemyAsyncpgSession,
)
ON_SQLITE: tuple[Callable[[Database], Caller], ...] = (
    Sqlite3,
    Aiosqlite,
    SqlAlchemy,
    SqlAlchemySession,
    SqlAlchemyAsync,
    SqlAlchemyAsyncSession,
)


def _sync_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def _async_url(url: str, driver: str) -> str:
    if url.startswith("sqlite"):
        return url.replace("sqlite:", "sqlite+aiosqlite:")
    return url.replace("postgresql://", f"postgresql+{driver}://")
