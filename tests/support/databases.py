"""The databases that the contract is run on, each with its tables made and empty."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import psycopg

from dibs import Dibs
from tests.support import notices
from tests.support.leaks import open_files_in
from tests.support.waiting import wait_until

TABLES = ("job", "history", "attempt_error", "queue", "lane", "worker", "chore")


class Database(Protocol):
    """One database of one test."""

    name: str
    dialect: str
    url: str

    def table(self, name: str) -> str:
        """How SQL names one of dibs' tables."""
        ...

    def connect(self) -> Any:
        """A connection in autocommit mode, which the test must close."""
        ...

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has any."""
        ...

    def count(self, name: str) -> int:
        """Rows of one of dibs' tables."""
        ...

    def empty(self) -> None:
        """Forget everything the test stored; fails while somebody still holds a lock."""
        ...

    def connections(self) -> list[str]:
        """What is still connected besides the harness."""
        ...


class Server(Database, Protocol):
    """One on a server: several programs at a time, who wait for each other's locks."""

    def waiting_for_a_lock(self) -> int:
        """Sessions of this database that wait for a lock another one holds."""
        ...

    def end_connections(self) -> int:
        """End all connections but the harness'; answers how many."""
        ...


class Common:
    """What databases on servers and in files share."""

    name: str
    dialect: str
    table: Callable[[str], str]
    query: Callable[[str], list[tuple[Any, ...]]]

    def count(self, name: str) -> int:
        return int(self.query(f"select count(*) from {self.table(name)}")[0][0])

    def __repr__(self) -> str:
        return self.name


class Postgres(Common):
    """A database on a real server, made once for a test process."""

    dialect = "postgres"

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.control = psycopg.connect(url, autocommit=True, application_name="control")
        self.control.execute("set lock_timeout = '10s'")

    def table(self, name: str) -> str:
        return f"dibs.{name}"

    def connect(self) -> psycopg.Connection[Any]:
        return notices.watch(psycopg.connect(self.url, autocommit=True, application_name="test"))

    def query(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self.control.execute(text.encode())
        return cursor.fetchall() if cursor.description else []

    def empty(self) -> None:
        for name in TABLES:
            if self.query(f"select 1 from {self.table(name)} limit 1"):
                self.query(f"truncate {self.table(name)}")

    def connections(self) -> list[str]:
        rows = self.query(
            "select application_name || ': ' || query from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
        return [row[0] for row in rows]

    def end_connections(self) -> int:
        return len(
            self.query(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
            )
        )

    def waiting_for_a_lock(self) -> int:
        """Sessions of this database that wait for a lock another one holds."""
        rows = self.query(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        return int(rows[0][0])


class Sqlite(Common):
    """A file of its own for each test."""

    name = "sqlite"
    dialect = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "jobs.db"
        self.url = f"sqlite:///{self.path}"

    def table(self, name: str) -> str:
        return f"dibs_{name}"

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, timeout=10)

    def query(self, text: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()

    def empty(self) -> None:
        """The folder goes with the test."""

    def connections(self) -> list[str]:
        return open_files_in(self.folder)


def given_servers() -> dict[str, str]:
    """What the run was given, as name -> administrator's URL."""
    import json

    found: dict[str, str] = json.loads(os.environ.get("DIBS_TEST_SERVERS") or "{}")
    return found


@contextmanager
def fresh_postgres(name: str, admin_url: str, worker: str) -> Iterator[Postgres]:
    """A migrated database of this test process, dropped at its end."""
    database = f"dibs_{worker}_{os.getpid()}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(f"create database {database}".encode())
        url = urlsplit(admin_url)._replace(path=f"/{database}").geturl()
        made = Dibs(url)
        made.migrate()
        made.close()
        made_here = Postgres(name, url)
        try:
            yield made_here
        finally:
            made_here.control.close()
            admin.execute(f"drop database {database} with (force)".encode())


def migrated_file(folder: Path) -> Path:
    """A SQLite file with dibs' tables, to be copied for each test."""
    path = folder / "template.db"
    made = Dibs(f"sqlite:///{path}")
    made.migrate()
    made.close()
    return path


def fresh_sqlite(folder: Path, template: Path) -> Sqlite:
    """A copy of the template."""
    folder.mkdir(parents=True, exist_ok=True)
    database = Sqlite(folder)
    shutil.copyfile(template, database.path)
    return database


def check_connections(database: Database) -> None:
    """Fail if the test left something connected; what it left is ended, for the tests that follow."""
    try:
        wait_until(lambda: not database.connections(), "the end of all connections", 5)
    except AssertionError:
        left = database.connections()
        if database.dialect != "sqlite":
            cast("Server", database).end_connections()
        raise AssertionError(f"left connected to {database.name}: {left}") from None
