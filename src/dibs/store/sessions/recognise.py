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


def _sqlalchemy_database(given: Any) -> str:
    bind = given.get_bind() if hasattr(given, "get_bind") else given
    return str(bind.dialect.name).replace("postgresql", "postgres")


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

_KINDS: dict[str, tuple[str | None, Callable[[Any], Any], Adapter]] = {
    "psycopg.Connection": ("postgres", _itself, _PSYCOPG),
    "psycopg.Cursor": ("postgres", _connection_of, _PSYCOPG),
    "psycopg.AsyncConnection": ("postgres", _itself, _PSYCOPG_ASYNC),
    "psycopg.AsyncCursor": ("postgres", _connection_of, _PSYCOPG_ASYNC),
    "asyncpg.Connection": ("postgres", _itself, _ASYNCPG),
    "asyncpg.PoolConnectionProxy": ("postgres", _itself, _ASYNCPG),
    "sqlalchemy.Connection": (None, _itself, _SQLALCHEMY),
    "sqlalchemy.Session": (None, lambda given: given.connection(), _SQLALCHEMY),
    "sqlalchemy.scoped_session": (None, lambda given: given.connection(), _SQLALCHEMY),
    "sqlalchemy.AsyncConnection": (None, _itself, _SQLALCHEMY_ASYNC),
    "sqlalchemy.AsyncSession": (None, _itself, _SQLALCHEMY_ASYNC),
    "sqlalchemy.async_scoped_session": (None, _itself, _SQLALCHEMY_ASYNC),
    "sqlite3.Connection": ("sqlite", _itself, _SQLITE),
    "sqlite3.Cursor": ("sqlite", _connection_of, _SQLITE),
    "aiosqlite.Connection": ("sqlite", _itself, _AIOSQLITE),
}
"""Kind of connection: its database (None: it says itself), how to reach the connection, and its session."""


def recognise(given: Any, dialect: Dialect) -> Session | AsyncSession:
    """A session over a caller's connection, or an error that says why it cannot be used."""
    known = next((_KINDS[kind] for kind in _kinds(given) if kind in _KINDS), None)
    if known is None:
        raise InvalidOption(
            f"connection={type(given).__module__}.{type(given).__qualname__} is no connection dibs knows.",
            "Pass a connection of psycopg, asyncpg, SQLAlchemy, sqlite3 or aiosqlite.",
        )
    database, unwrap, adapt = known
    found = database or _sqlalchemy_database(given)
    if found != dialect.name:
        raise WrongDatabase(
            f"This Dibs keeps its jobs in {dialect.title}, the connection given is to {found}: "
            "a job in another database cannot commit together with your data.",
            "Pass a connection to the database of the Dibs URL, or make a second Dibs for the other one.",
        )
    return adapt(unwrap(given), dialect)
