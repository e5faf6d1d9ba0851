"""How each database takes a migration step: in one transaction, under one lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from dibs.store.migrate import Applied, Migration

_LOCK = 0x64696273
"""The advisory lock of migrations: 'dibs' in ASCII."""

POSTGRES_BOOK = (
    "create schema if not exists dibs",
    "create table if not exists dibs.migration (version integer primary key, name text not null,"
    " checksum text not null, needs integer not null, applied_at timestamptz not null default clock_timestamp())",
)
SQLITE_BOOK = (
    "create table if not exists dibs_migration (version integer primary key, name text not null,"
    " checksum text not null, needs integer not null, applied_at text not null default (datetime('now')))",
)
"""Where the steps taken are written down."""

Plan = Callable[[list[Applied]], list[Migration]]


class PostgresMigrator:
    """DDL is transactional: all missing steps in one transaction, serialised by an advisory lock."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def applied(self) -> list[Applied] | None:
        """The steps taken so far."""
        row = self._connection.execute("select to_regclass('dibs.migration') is not null").fetchone()
        return self._applied() if row == (True,) else None

    def _applied(self) -> list[Applied]:
        rows = self._connection.execute(
            "select version, name, checksum, needs from dibs.migration order by version"
        ).fetchall()
        return [Applied(*row) for row in rows]

    def apply(self, plan: Plan) -> list[Migration]:
        """Apply what is missing."""
        with self._connection.transaction():
            # Whatever the server's default: a snapshot older than the lock would not see what the last holder did.
            self._connection.execute("set transaction isolation level read committed")
            self._connection.execute("set local client_min_messages = warning")  # "already exists, skipping"
            self._connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            for statement in POSTGRES_BOOK:
                self._connection.execute(statement)
            missing = plan(self._applied())
            for step in missing:
                self._connection.execute(step.text.encode())
                self._connection.execute(
                    "insert into dibs.migration (version, name, checksum, needs) values (%s, %s, %s, %s)",
                    (step.version, step.name, step.checksum, step.needs),
                )
        return missing


class SqliteMigrator:
    """DDL is transactional, and the write lock is the lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def applied(self) -> list[Applied] | None:
        """The steps taken so far."""
        found = self._connection.execute("select 1 from sqlite_master where name = 'dibs_migration'").fetchone()
        return self._applied() if found else None

    def _applied(self) -> list[Applied]:
        rows = self._connection.execute("select version, name, checksum, needs from dibs_migration order by version")
        return [Applied(*row) for row in rows]

    def apply(self, plan: Plan) -> list[Migration]:
        """Apply what is missing."""
        self._connection.execute("begin immediate")
        try:
            missing = self._apply(plan)
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")
        return missing

    def _apply(self, plan: Plan) -> list[Migration]:
        for statement in SQLITE_BOOK:
            self._connection.execute(statement)
        missing = plan(self._applied())
        for step in missing:
            for statement in _statements(step.text):
                self._connection.execute(statement)
            self._connection.execute(
                "insert into dibs_migration (version, name, checksum, needs) values (?, ?, ?, ?)",
                (step.version, step.name, step.checksum, step.needs),
            )
        return missing


def _statements(text: str) -> Iterator[str]:
    """Statement by statement; SQLite itself knows where one ends."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
