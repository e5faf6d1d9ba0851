"""Databases on real MySQL and MariaDB servers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pymysql

from dibs import Dibs
from tests.support.databases import TABLES, Common


def arguments(url: str) -> dict[str, Any]:
    """What the drivers are told of a URL; all four understand this."""
    parts = urlsplit(url)
    return {
        "host": parts.hostname,
        "port": parts.port,
        "user": parts.username,
        "password": parts.password,
        "database": parts.path.strip("/") or None,
    }


class Connection(pymysql.Connection):  # type: ignore[type-arg]
    """PyMySQL's, with the `execute` that connections of other databases have."""

    def execute(self, text: str, values: Any = None) -> Any:
        """Run a statement; answers the cursor."""
        cursor = self.cursor()
        cursor.execute(text, values)
        return cursor


class Mysql(Common):
    """A database on a real server, made once for a test process."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.dialect = url.partition(":")[0]
        # MySQL's older list is of utf8mb3: it fails while any session of the server runs a statement with an emoji.
        self.sessions = f"{'performance' if self.dialect == 'mysql' else 'information'}_schema.processlist"
        self.url = url
        self.control = Connection(**arguments(url), autocommit=True)
        self.query("set session innodb_lock_wait_timeout = 10, lock_wait_timeout = 10")

    def table(self, name: str) -> str:
        return f"dibs_{name}"

    def connect(self) -> Connection:
        return Connection(**arguments(self.url), autocommit=True)

    def query(self, text: str) -> list[tuple[Any, ...]]:
        return list(self.control.execute(text).fetchall())

    def empty(self) -> None:
        for name in TABLES:
            if self.query(f"select 1 from {self.table(name)} limit 1"):
                self.query(f"delete from {self.table(name)}")

    def connections(self) -> list[str]:
        rows = self.query(
            f"select concat(id, ': ', coalesce(info, command)) from {self.sessions}"
            " where db = database() and id <> connection_id()"
        )
        return [row[0] for row in rows]

    def end_connections(self) -> int:
        rows = self.query(f"select id from {self.sessions} where db = database() and id <> connection_id()")
        for (number,) in rows:
            self.query(f"kill {number}")
        return len(rows)

    def waiting_for_a_lock(self) -> int:
        """Sessions of this database that wait for a lock another one holds."""
        # information_schema.innodb_trx would be easier to read, but shows an old picture to whoever asks often.
        [(_, _, told)] = self.query("show engine innodb status")
        waiting = [part for part in told.split("---TRANSACTION") if "\nLOCK WAIT" in part]
        threads = {int(found[1]) for part in waiting if (found := re.search(r"thread id (\d+)", part))}
        ours = {row[0] for row in self.query(f"select id from {self.sessions} where db = database()")}
        return len(threads & ours)


@contextmanager
def fresh_mysql(name: str, admin_url: str, worker: str) -> Iterator[Mysql]:
    """A migrated database of this test process, dropped at its end."""
    database = f"dibs_{worker}_{os.getpid()}"
    admin = Connection(**arguments(admin_url), autocommit=True)
    admin.execute(f"create database {database}")
    url = urlsplit(admin_url)._replace(path=f"/{database}").geturl()
    made = Dibs(url)
    made.migrate()
    made.close()
    made_here = Mysql(name, url)
    try:
        yield made_here
    finally:
        made_here.control.close()
        admin.execute(f"drop database {database}")
        admin.close()
