"""Which kind of connection a caller has given, told by its type's name: no driver is imported for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dibs.errors import InvalidOption, WrongDatabase
from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Session
from dibs.store.sessions.asyncpg import AsyncpgSession
from dibs.store.sessions.psycopg import AsyncPsycopgSession, PsycopgSession
from dibs.store.sessions.sqlalchemy import AsyncSqlAlchemySession, SqlAlchemySession
from dibs.store.sessions.sqlite import AiosqliteSession, SqliteSession

Adapter: TypeAlias = Callable[[Any, Dialect], Session | AsyncSession]


def _kind(given: Any) -> set[str]:
    """The qualified names of a value's classes, without the private modules in between."""
    return {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(given).__mro__}


def _sqlalchemy_database(given: Any) -> str:
    bind = given.get_bind() if hasattr(given, "get_bind") else given
    return str(bind.dialect.name).replace("postgresql", "postgres")


_KINDS: tuple[tuple[frozenset[str], str | None, Callable[[Any], Any], Adapter], ...] = (
    (frozenset({"psycopg.Connection"}), "postgres", lambda given: given, PsycopgSession),
    (frozenset({"psycopg.AsyncConnection"}), "postgres", lambda given: given, AsyncPsycopgSession),
    (frozenset({"psycopg.Cursor"}), "postgres", lambda given: given.connection, PsycopgSession),
    (frozenset({"psycopg.AsyncCursor"}), "postgres", lambda given: given.connection, AsyncPsycopgSession),
    (
        frozenset({"asyncpg.Connection", "asyncpg.PoolConnectionProxy"}),
        "postgres",
        lambda given: given,
        AsyncpgSession,
    ),
    (frozenset({"sqlalchemy.Connection"}), None, lambda given: given, SqlAlchemySession),
    (
        frozenset({"sqlalchemy.Session", "sqlalchemy.scoped_session"}),
        None,
        lambda given: given.connection(),
        SqlAlchemySession,
    ),
    (
        frozenset({"sqlalchemy.AsyncConnection", "sqlalchemy.AsyncSession", "sqlalchemy.async_scoped_session"}),
        None,
        lambda given: given,
        AsyncSqlAlchemySession,
    ),
    (frozenset({"sqlite3.Connection"}), "sqlite", lambda given: given, SqliteSession),
    (frozenset({"sqlite3.Cursor"}), "sqlite", lambda given: given.connection, SqliteSession),
    (frozenset({"aiosqlite.Connection"}), "sqlite", lambda given: given, AiosqliteSession),
)


def recognise(given: Any, dialect: Dialect) -> Session | AsyncSession:
    """A session over a caller's connection, or an error that says why it cannot be used."""
    kinds = _kind(given)
    for names, database, unwrap, adapt in _KINDS:
        if names & kinds:
            found = database or _sqlalchemy_database(given)
            if found != dialect.name:
                raise WrongDatabase(
                    f"This Dibs keeps its jobs in {dialect.title}, the connection given is to {found}: "
                    "a job in another database cannot commit together with your data.",
                    "Pass a connection to the database of the Dibs URL, or make a second Dibs for the other one.",
                )
            return adapt(unwrap(given), dialect)
    raise InvalidOption(
        f"connection={type(given).__module__}.{type(given).__qualname__} is no connection dibs knows.",
        "Pass a connection of psycopg, asyncpg, SQLAlchemy, sqlite3 or aiosqlite.",
    )
