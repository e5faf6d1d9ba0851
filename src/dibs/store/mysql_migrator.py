"""How MySQL and MariaDB take a migration step: statement by statement, each written down, under one lock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from dibs.errors import DatabaseError
from dibs.store.migrate import Applied, Migration
from dibs.store.mysql_errors import code

_TABLE = "engine = innodb, character set utf8mb4, collate utf8mb4_bin"
_BOOK = {
    "dibs_migration": "create table dibs_migration (version integer not null primary key, name varchar(191) not null,"
    f" checksum varchar(64) not null, needs integer not null, applied_at datetime(6)) {_TABLE}",
    "dibs_migration_begun": "create table dibs_migration_begun (version integer not null primary key,"
    f" checksum varchar(64) not null, done integer not null) {_TABLE}",
}
"""Where the steps taken are written down, and how far the one came that is being taken."""
MYSQL_BOOK = tuple(_BOOK.values())
LOCK_WAIT = 3_600
TABLE_WAIT = 10
"""Seconds a change waits for those who use a table: all who come after it wait, too."""
_THERE_ALREADY = frozenset({1050, 1060, 1061, 1091, 1517, 1826, 3822})
"""What a statement that was carried out, and whose answer was lost, says when it is sent again."""

Plan = Callable[[list[Applied]], list[Migration]]


class MysqlMigrator:
    """DDL commits by itself, so nothing can be undone: a step that was interrupted goes on where it stopped."""

    def __init__(self, connection: Any, patient: Callable[[], Any]) -> None:
        self._connection = connection
        self._patient = patient

    def applied(self) -> list[Applied] | None:
        """The steps taken so far; refuses tables of an engine without transactions."""
        there = _tables(self._connection)
        wrong = sorted(name for name, engine in there.items() if engine != "InnoDB")
        if wrong:
            raise DatabaseError(
                f"The table {wrong[0]} is kept by the engine {there[wrong[0]]}, which has no transactions.",
                f"Change it: alter table {wrong[0]} engine = innodb",
            )
        return _applied(self._connection) if "dibs_migration" in there else None

    def apply(self, plan: Plan) -> list[Migration]:
        """Apply what is missing, over a connection that may wait for long, and that holds the lock while it lives."""
        with closing(self._patient()) as connection:
            _lock(connection)
            there = _tables(connection)
            for name, statement in _BOOK.items():
                if name not in there:
                    _run(connection, statement)
            missing = plan(_applied(connection))
            for step in missing:
                _take(connection, step)
        return missing


def _lock(connection: Any) -> None:
    """One program at a time in this database; the name of a lock has at most 64 characters."""
    _run(connection, f"set session lock_wait_timeout = {TABLE_WAIT}")
    rows = _rows(connection, f"select get_lock(concat('dibs.', left(sha2(database(), 256), 40)), {LOCK_WAIT})")
    if rows != [(1,)]:
        raise DatabaseError("Another program has been changing dibs' tables for an hour.", "See what it waits for.")


def _take(connection: Any, step: Migration) -> None:
    begun = _rows(connection, "select checksum, done from dibs_migration_begun where version = %s", step.version)
    if begun and begun[0][0] != step.checksum:
        raise DatabaseError(
            f"Step {step.version} ({step.name}) was begun with another text than this dibs has.",
            "Finish it with the version of dibs that began it.",
        )
    if not begun:
        _run(connection, "insert into dibs_migration_begun values (%s, %s, 0)", step.version, step.checksum)
    done = begun[0][1] if begun else 0
    for number, statement in enumerate(statements(step.text)):
        if number >= done:
            _carry_out(connection, statement, perhaps_done=bool(begun) and number == done)
            _run(connection, "update dibs_migration_begun set done = %s where version = %s", number + 1, step.version)
    _run(connection, "start transaction")
    _run(
        connection,
        "insert into dibs_migration (version, name, checksum, needs, applied_at)"
        " values (%s, %s, %s, %s, utc_timestamp(6))",
        *(step.version, step.name, step.checksum, step.needs),
    )
    _run(connection, "delete from dibs_migration_begun where version = %s", step.version)
    _run(connection, "commit")


def _carry_out(connection: Any, statement: str, perhaps_done: bool) -> None:
    """The first statement after an interruption may have been carried out before it could be written down."""
    try:
        _run(connection, statement)
    except Exception as error:
        if not (perhaps_done and code(error) in _THERE_ALREADY):
            raise


def _tables(connection: Any) -> dict[str, str]:
    """dibs' tables in this database, each with its engine."""
    return dict(
        _rows(
            connection,
            "select table_name, engine from information_schema.tables"
            " where table_schema = database() and left(table_name, 5) = 'dibs_' and table_type = 'BASE TABLE'",
        )
    )


def _applied(connection: Any) -> list[Applied]:
    rows = _rows(connection, "select version, name, checksum, needs from dibs_migration order by version")
    return [Applied(*row) for row in rows]


def _run(connection: Any, text: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)


def _rows(connection: Any, text: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)
        return list(cursor.fetchall())


def statements(text: str) -> Iterator[str]:
    """Statement by statement: each ends with a semicolon at the end of a line."""
    for part in re.split(r";[ \t]*$", text, flags=re.MULTILINE):
        if re.sub(r"^--.*$", "", part, flags=re.MULTILINE).strip():
            yield part.strip()
