"""Each of these pieces can be taken away without touching anything else: the rest imports, and a job still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.conftest import MYSQL
from tests.support.databases import Database
from tests.surface.source import ROOT

PIECES = {
    "the command line": ["dibs.cli", "dibs.messages", "click", "rich"],
    "the worker": ["dibs.worker"],
    "the bell": ["dibs.worker.bell"],
    "the chores": ["dibs.worker.chores"],
    "PostgreSQL": ["dibs.store.postgres"],
    "PostgreSQL and its driver": ["dibs.store.postgres", "dibs.store.sessions.psycopg", "psycopg"],
    "MySQL and MariaDB": ["dibs.store.mysql", "dibs.store.sessions.mysql"],
    "callers' asyncpg connections": ["dibs.store.sessions.asyncpg", "asyncpg"],
    "callers' SQLAlchemy sessions": ["dibs.store.sessions.sqlalchemy", "sqlalchemy"],
    "every optional package": [
        *("psycopg", "asyncpg", "aiosqlite", "pymysql", "aiomysql", "asyncmy", "sqlalchemy"),
        *("pydantic", "uvloop", "click", "rich"),
    ],
}


@pytest.mark.parametrize("piece", PIECES)
def test_the_rest_still_runs_a_job_on_sqlite_without(piece: str) -> None:
    _run_smoke_test(piece, PIECES[piece], "sqlite://")


def test_a_job_still_runs_on_postgresql_without_sqlite(open_database: Callable[[str], Database]) -> None:
    hidden = ["dibs.store.sqlite", "dibs.store.sessions.sqlite", "aiosqlite"]
    _run_smoke_test("SQLite", hidden, open_database("postgres18").url)


@pytest.mark.parametrize("name", MYSQL)
def test_a_job_still_runs_on_mysql_without_the_others(open_database: Callable[[str], Database], name: str) -> None:
    hidden = ["dibs.store.sqlite", "dibs.store.sessions.sqlite", "dibs.store.postgres", "dibs.store.sessions.psycopg"]
    _run_smoke_test("SQLite and PostgreSQL", [*hidden, "psycopg", "aiomysql", "asyncmy"], open_database(name).url)


def _run_smoke_test(piece: str, hidden: list[str], url: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.surface.smoke", *hidden],
        cwd=ROOT,
        env={**os.environ, "SMOKE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert finished.returncode == 0, f"without {piece} ({', '.join(hidden)}):\n{finished.stderr[-2000:]}"
    assert finished.stdout == "42\n"
