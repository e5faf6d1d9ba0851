"""Callers' connections in autocommit mode, on which no transaction is open: each statement commits by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.support import notices
from tests.support.callers import (
    AsyncCaller,
    Caller,
    Psycopg,
    SqlAlchemy,
    SqlAlchemyAsync,
    Sqlite3,
    _async_url,
    _sync_url,
)
from tests.support.databases import Database


class AutoPsycopg(Psycopg):
    """psycopg.connect(autocommit=True)."""

    def open(self) -> Any:
        return notices.watch(psycopg.connect(self.database.url, autocommit=True))


class AutoSqlite3(Sqlite3):
    """sqlite3.connect(isolation_level=None)."""

    def open(self) -> Any:
        path = self.database.url.removeprefix("sqlite:///")
        return sqlite3.connect(path, timeout=10, isolation_level=None)


class AutoSqlAlchemy(SqlAlchemy):
    """A SQLAlchemy Connection at the isolation level AUTOCOMMIT."""

    def open(self) -> Any:
        url = _sync_url(self.database.url)
        self.engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
        event.listen(self.engine, "connect", lambda connection, _record: notices.watch(connection))
        return self.connect()

    def connect(self) -> Any:
        """The connection or session."""
        return self.engine.connect()


class AutoSqlAlchemySession(AutoSqlAlchemy):
    """A SQLAlchemy Session over an engine at that level."""

    def connect(self) -> Any:
        return Session(self.engine)


class AutoPsycopgAsync(AsyncCaller):
    """psycopg.AsyncConnection.connect(autocommit=True)."""

    async def aopen(self) -> Any:
        return notices.watch(await psycopg.AsyncConnection.connect(self.database.url, autocommit=True))


class AutoAsyncpg(AsyncCaller):
    """asyncpg.connect(), without a transaction."""

    async def aopen(self) -> Any:
        return notices.watch(await asyncpg.connect(self.database.url))

    def rollback(self) -> None:
        """There is nothing to roll back."""


class AutoAiosqlite(AsyncCaller):
    """aiosqlite.connect(isolation_level=None)."""

    async def aopen(self) -> Any:
        path = self.database.url.removeprefix("sqlite:///")
        return await aiosqlite.connect(path, timeout=10, isolation_level=None)


class AutoSqlAlchemyAsync(SqlAlchemyAsync):
    """A SQLAlchemy AsyncConnection at the isolation level AUTOCOMMIT."""

    async def aopen(self) -> Any:
        url = _async_url(self.database.url, self.driver)
        self.engine = create_async_engine(url, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
        event.listen(self.engine.sync_engine, "connect", lambda connection, _record: notices.watch(connection))
        return await self.aconnect()


class AutoSqlAlchemyAsyncSession(AutoSqlAlchemyAsync):
    """A SQLAlchemy AsyncSession over an engine at that level."""

    async def aconnect(self) -> Any:
        session = AsyncSession(self.engine)
        await session.connection()  # now: its thread is the caller's, and ends with it
        return session


class AutoSqlAlchemyAsyncpg(AutoSqlAlchemyAsync):
    """The same over asyncpg."""

    driver = "asyncpg"


ON_POSTGRES: tuple[Callable[[Database], Caller], ...] = (
    AutoPsycopg,
    AutoPsycopgAsync,
    AutoAsyncpg,
    AutoSqlAlchemy,
    AutoSqlAlchemySession,
    AutoSqlAlchemyAsync,
    AutoSqlAlchemyAsyncSession,
    AutoSqlAlchemyAsyncpg,
)
ON_SQLITE: tuple[Callable[[Database], Caller], ...] = (
    AutoSqlite3,
    AutoAiosqlite,
    AutoSqlAlchemy,
    AutoSqlAlchemySession,
    AutoSqlAlchemyAsync,
    AutoSqlAlchemyAsyncSession,
)
THAT_SURVIVE_A_CANCELLATION: tuple[Callable[[Database], Caller], ...] = (AutoPsycopgAsync, AutoAsyncpg)
"""SQLAlchemy gives a connection up when a task that used it is cancelled."""
