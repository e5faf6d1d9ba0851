"""Callers' connections to MySQL and MariaDB, by each driver there is for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import aiomysql
import asyncmy
import pymysql
import sqlalchemy
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.support import notices
from tests.support.callers import AsyncCaller, Caller, Psycopg
from tests.support.databases import Database
from tests.support.mysql_database import arguments


class PyMySQL(Psycopg):
    """pymysql.Connection."""

    autocommit = False

    def open(self) -> Any:
        return notices.watch(pymysql.connect(**arguments(self.database.url), autocommit=self.autocommit))

    def execute(self, text: str) -> None:
        with self.given.cursor() as cursor:
            cursor.execute(text)


class Mysqlclient(PyMySQL):
    """MySQLdb.Connection, as far as dibs sees it: mysqlclient cannot be installed without its C library."""

    def open(self) -> Any:
        from tests.support import mysqldb

        return notices.watch(mysqldb.connect(**arguments(self.database.url), autocommit=self.autocommit))


class Aiomysql(AsyncCaller):
    """aiomysql.Connection."""

    autocommit = False

    async def aopen(self) -> Any:
        given = arguments(self.database.url)
        return await aiomysql.connect(db=given.pop("database"), **given, autocommit=self.autocommit)

    def execute(self, text: str) -> None:
        self.run(self._execute(text))

    async def _execute(self, text: str) -> None:
        async with self.given.cursor() as cursor:
            await cursor.execute(text)

    async def aclose(self) -> None:
        await self.given.ensure_closed()

    def connect_again_if_lost(self) -> None:
        self.given = self.open()


class Asyncmy(Aiomysql):
    """asyncmy.Connection."""

    async def aopen(self) -> Any:
        given = arguments(self.database.url)
        return await asyncmy.connect(db=given.pop("database"), **given, autocommit=self.autocommit)


class _OverSqlAlchemy:
    """What connections of both kinds have in common."""

    level: ClassVar[dict[str, Any]] = {}
    driver = "aiomysql"


class SqlAlchemyMysql(_OverSqlAlchemy, Psycopg):
    """sqlalchemy.Connection over PyMySQL."""

    def open(self) -> Any:
        url = self.database.url.replace("://", "+pymysql://")
        self.engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, **self.level)
        event.listen(self.engine, "connect", lambda connection, _record: notices.watch(connection))
        return self.connect()

    def connect(self) -> Any:
        """The connection or session."""
        return self.engine.connect()

    def execute(self, text: str) -> None:
        self.given.execute(sqlalchemy.text(text))

    def close(self) -> None:
        self.given.close()
        self.engine.dispose()


class SqlAlchemyMysqlSession(SqlAlchemyMysql):
    """sqlalchemy.orm.Session."""

    def connect(self) -> Any:
        return Session(self.engine)


class SqlAlchemyAiomysql(_OverSqlAlchemy, AsyncCaller):
    """sqlalchemy AsyncConnection over aiomysql."""

    async def aopen(self) -> Any:
        url = self.database.url.replace("://", f"+{self.driver}://")
        self.engine = create_async_engine(url, poolclass=sqlalchemy.NullPool, **self.level)
        return await self.aconnect()

    async def aconnect(self) -> Any:
        """The connection or session."""
        return await self.engine.connect()

    def execute(self, text: str) -> None:
        self.run(self.given.execute(sqlalchemy.text(text)))

    async def aclose(self) -> None:
        await self.given.close()
        await self.engine.dispose()


class SqlAlchemyAiomysqlSession(SqlAlchemyAiomysql):
    """sqlalchemy AsyncSession over aiomysql."""

    async def aconnect(self) -> Any:
        return AsyncSession(self.engine)


class SqlAlchemyAsyncmy(SqlAlchemyAiomysql):
    """sqlalchemy AsyncConnection over asyncmy."""

    driver = "asyncmy"


class SqlAlchemyAsyncmySession(SqlAlchemyAiomysqlSession):
    """sqlalchemy AsyncSession over asyncmy."""

    driver = "asyncmy"


ON_MYSQL: tuple[Callable[[Database], Caller], ...] = (
    PyMySQL,
    Mysqlclient,
    Aiomysql,
    Asyncmy,
    SqlAlchemyMysql,
    SqlAlchemyMysqlSession,
    SqlAlchemyAiomysql,
    SqlAlchemyAiomysqlSession,
    SqlAlchemyAsyncmy,
    SqlAlchemyAsyncmySession,
)


def _in_autocommit_mode(kind: Any) -> Any:
    """The same connection as each statement commits by itself on it."""
    settings = {"autocommit": True, "level": {"isolation_level": "AUTOCOMMIT"}, "__doc__": kind.__doc__}
    return type(f"Auto{kind.__name__}", (kind,), settings)


AUTO_ON_MYSQL: tuple[Callable[[Database], Caller], ...] = tuple(map(_in_autocommit_mode, ON_MYSQL))
AUTO_THAT_ARE_LOST_WITH_A_CANCELLATION: tuple[Callable[[Database], Caller], ...] = tuple(
    map(_in_autocommit_mode, (Aiomysql, Asyncmy))
)
"""These two close a connection when a task that used it is cancelled: the server undoes what was open on it."""
