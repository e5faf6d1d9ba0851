"""Which kind of connection a caller has given, told by its type's name: no driver is imported for it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from dibs.errors import InvalidOption, WrongDatabase
from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Session

Adapter: TypeAlias = Callable[[Any, Dialect], Session | AsyncSession]


def _kinds(given: Any) -> list[str]:
    """The qualified names of a value's classes, without the private modules in between."""
    return [f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(given).__mro__]


Ask: TypeAlias = Callable[[Any, str], str]
"""Which database a connection is to, told from it and from what is wanted."""


def _sqlalchemy_database(given: Any, wanted: str) -> str:
    bind = given.get_bind() if hasattr(given, "get_bind") else given
    name = str(bind.dialect.name).replace("postgresql", "postgres")
    if name != "mysql" or wanted not in _RELATED:
        return name
    if getattr(bind.dialect, "server_version_info", None) is None:
        return wanted  # may turn out to be either; when it is connected it is asked again
    return "mariadb" if bind.dialect.is_mariadb else "mysql"


def _mysql_database(given: Any, _wanted: str) -> str:
    server = getattr(given, "connection", given).get_server_info()
    return "mariadb" if "mariadb" in str(server).lower() else "mysql"


def _itself(given: Any) -> Any:
    return given


def _connection_of(given: Any) -> Any:
    return given.connection


def _adapter(module: str, name: str) -> Adapter:
    """A session's class, loaded when such a connection is met, not before."""

    def adapt(given: Any, dialect: Dialect) -> Session | AsyncSession:
        session: Session | AsyncSession = getattr(import_module(f"dibs.store.sessions.{module}"), name)(given, dialect)
        return session

    return adapt


_PSYCOPG = _adapter("psycopg", "PsycopgSession")
_PSYCOPG_ASYNC = _adapter("psycopg", "AsyncPsycopgSession")
_ASYNCPG = _adapter("asyncpg", "AsyncpgSession")
_SQLALCHEMY = _adapter("sqlalchemy", "SqlAlchemySession")
_SQLALCHEMY_ASYNC = _adapter("sqlalchemy", "AsyncSqlAlchemySession")
_SQLITE = _adapter("sqlite", "SqliteSession")
_AIOSQLITE = _adapter("sqlite", "AiosqliteSession")
_MYSQL = _adapter("mysql", "MysqlSession")
_MYSQLCLIENT = _adapter("mysql", "MysqlclientSession")
_MYSQL_ASYNC = _adapter("mysql", "AsyncMysqlSession")
_RELATED = frozenset({"mysql", "mariadb"})

_KINDS: dict[str, tuple[str | Ask, Callable[[Any], Any], Adapter]] = {
    "psycopg.Connection": ("postgres", _itself, _PSYCOPG),
    "psycopg.Cursor": ("postgres", _connection_of, _PSYCOPG),
    "psycopg.AsyncConnection": ("postgres", _itself, _PSYCOPG_ASYNC),
    "psycopg.AsyncCursor": ("postgres", _connection_of, _PSYCOPG_ASYNC),
    "asyncpg.Connection": ("postgres", _itself, _ASYNCPG),
    "asyncpg.PoolConnectionProxy": ("postgres", _itself, _ASYNCPG),
    "sqlalchemy.Connection": (_sqlalchemy_database, _itself, _SQLALCHEMY),
    "sqlalchemy.Session": (_sqlalchemy_database, lambda given: given.connection(), _SQLALCHEMY),
    "sqlalchemy.scoped_session": (_sqlalchemy_database, lambda given: given.connection(), _SQLALCHEMY),
    "sqlalchemy.AsyncConnection": (_sqlalchemy_database, _itself, _SQLALCHEMY_ASYNC),
    "sqlalchemy.AsyncSession": (_sqlalchemy_database, _itself, _SQLALCHEMY_ASYNC),
    "sqlalchemy.async_scoped_session": (_sqlalchemy_database, _itself, _SQLALCHEMY_ASYNC),
    "sqlite3.Connection": ("sqlite", _itself, _SQLITE),
    "sqlite3.Cursor": ("sqlite", _connection_of, _SQLITE),
    "aiosqlite.Connection": ("sqlite", _itself, _AIOSQLITE),
    "pymysql.Connection": (_mysql_database, _itself, _MYSQL),
    "pymysql.Cursor": (_mysql_database, _connection_of, _MYSQL),
    "MySQLdb.Connection": (_mysql_database, _itself, _MYSQLCLIENT),
    "MySQLdb.BaseCursor": (_mysql_database, _connection_of, _MYSQLCLIENT),
    "aiomysql.Connection": (_mysql_database, _itself, _MYSQL_ASYNC),
    "aiomysql.Cursor": (_mysql_database, _connection_of, _MYSQL_ASYNC),
    "asyncmy.Connection": (_mysql_database, _itself, _MYSQL_ASYNC),
    "asyncmy.Cursor": (_mysql_database, _connection_of, _MYSQL_ASYNC),
}
"""Kind of connection: which database it is to, how to reach the connection, and its session."""


def recognise(given: Any, dialect: Dialect) -> Session | AsyncSession:
    """A session over a caller's connection, or an error that says why it cannot be used."""
    known = next((_KINDS[kind] for kind in _kinds(given) if kind in _KINDS), None)
    if known is None:
        raise InvalidOption(
            f"connection={type(given).__module__}.{type(given).__qualname__} is no connection dibs knows.",
            "Pass a connection of psycopg, asyncpg, PyMySQL, mysqlclient, aiomysql, asyncmy, sqlite3, aiosqlite or "
            "SQLAlchemy.",
        )
    database, unwrap, adapt = known
    _refuse_another(database, given, dialect)
    connection = unwrap(given)
    if connection is not given:
        _refuse_another(database, connection, dialect)
    return adapt(connection, dialect)


def _refuse_another(database: str | Ask, given: Any, dialect: Dialect) -> None:
    found = database if isinstance(database, str) else database(given, dialect.name)
    if found != dialect.name:
        raise WrongDatabase(
            f"This Dibs keeps its jobs in {dialect.title}, the connection given is to {found}: "
            "a job in another database cannot commit together with your data.",
            "Pass a connection to the database of the Dibs URL, or make a second Dibs for the other one.",
        )
