"""Plain SQL, past all of dibs' own code: one connection in autocommit mode to whatever a URL names."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql

MYSQL = ("mysql", "mariadb")


class Plain:
    """A connection whose rows are lists of tuples. Use it as a context manager, or close it."""

    def __init__(self, url: str) -> None:
        self.kind = url.partition(":")[0]
        self.prefix = "dibs." if self.kind == "postgresql" else "dibs_"
        """What names of dibs' tables begin with."""
        self.connection = _connected(self.kind, url)

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; its rows, if it has any."""
        cursor = self.connection.cursor()
        cursor.execute(text, values or None) if self.kind != "sqlite" else cursor.execute(text, values)
        found = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        cursor.close()
        return found

    def close(self) -> None:
        """Close it."""
        self.connection.close()


def _connected(kind: str, url: str) -> Any:
    if kind == "sqlite":
        return sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10, isolation_level=None)
    if kind in MYSQL:
        return pymysql.connect(**_arguments(url), autocommit=True)
    return psycopg.connect(url, autocommit=True)


def _arguments(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "host": parts.hostname,
        "port": parts.port,
        "user": parts.username,
        "password": parts.password,
        "database": parts.path.strip("/") or None,
    }
