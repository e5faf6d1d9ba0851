"""Fixtures of all suites: the databases, a `Dibs` on each, a clock, and checks that nothing is left behind.

A server that the run was not given is a skip that names it, and a failure where CI=true, unless
DIBS_ALLOW_MISSING names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

from dibs import Dibs
from dibs.store.mysql import MysqlDatabase
from dibs.store.postgres import PostgresDatabase
from tests.servers import PgbouncerServer, ServerUnavailable, must_be_there
from tests.support import notices
from tests.support.clock import FakeClock
from tests.support.databases import (
    Database,
    Postgres,
    Server,
    check_connections,
    fresh_postgres,
    fresh_sqlite,
    given_servers,
    migrated_file,
)
from tests.support.leaks import no_threads_left
from tests.support.mysql_database import Connection, Mysql, arguments, fresh_mysql
from tests.support.pooler import Pooled

POSTGRES = ("postgres18", "postgres15")
MYSQL = ("mysql97", "mariadb1011")
SERVERS = (*POSTGRES, *MYSQL)
DATABASES = ("sqlite", *SERVERS)
POOLED = "pgbouncer"
"""PostgreSQL 18 through a transaction pooler: one more database for the contract, by --pooler."""

Make = Callable[..., Dibs]
"""`dibs_on(url, **options)`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this project's tests."""
    parser.addoption("--pooler", action="store_true", help="run the contract through PgBouncer too")


def pytest_report_header() -> list[str]:
    """The exact versions this run is about."""
    import sqlite3

    found = [f"SQLite {sqlite3.sqlite_version}"]
    for name, url in given_servers().items():
        found.append(f"{name} {_version(url)}")
    missing = [name for name in SERVERS if name not in given_servers()]
    return [f"databases: {', '.join(found)}{''.join(f', WITHOUT {name}' for name in missing)}"]


def _version(url: str) -> str:
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as connection:
            return str(connection.execute("show server_version").fetchone())
    with Connection(**arguments(url)) as server:
        return str(server.execute("select version()").fetchone())


class Servers:
    """Databases of this test process, each made at its first use."""

    def __init__(self, worker: str, folder: Path) -> None:
        self._worker = worker
        self._folder = folder
        self._made: dict[str, Server] = {}
        self._template: Path | None = None
        self.stack = ExitStack()

    def get(self, name: str, folder: Path) -> Database:
        """The database of that name, empty; skips or fails the test if its server is missing."""
        if name == "sqlite":
            self._template = self._template or migrated_file(self._folder)
            return fresh_sqlite(folder, self._template)
        if name not in self._made:
            self._made[name] = self._pooled() if name == POOLED else self._fresh(name)
        return self._made[name]

    def _fresh(self, name: str) -> Server:
        if name in MYSQL:
            return self.stack.enter_context(fresh_mysql(name, server_url(name), self._worker))
        return self._fresh_postgres(name)

    def _fresh_postgres(self, name: str, suffix: str = "") -> Postgres:
        return self.stack.enter_context(fresh_postgres(name, server_url(name), self._worker + suffix))

    def _pooled(self) -> Postgres:
        """A database of its own: what is asked about its connections concerns nobody else's."""
        direct = self._fresh_postgres("postgres18", "_pooled")
        pooler = self.stack.enter_context(pooler_before("postgres18", size=8))
        return self.stack.enter_context(closing(Pooled(direct, pooler)))


def server_url(name: str) -> str:
    """The administrator's URL of a server; skips or fails the test if it is missing."""
    url = given_servers().get(name)
    if url is None:
        _missing(name, f"{name} is not available: DIBS_TEST_SERVERS does not name it; `python3 tests/run.py` starts it")
    return url


@contextmanager
def pooler_before(name: str, size: int) -> Iterator[PgbouncerServer]:
    """PgBouncer with `size` connections in front of a server; skips or fails the test if either is missing."""
    pooler = PgbouncerServer(server_url(name), pool_size=size)
    try:
        pooler.start()
    except ServerUnavailable as unavailable:
        _missing(pooler.name, str(unavailable))
    try:
        yield pooler
    finally:
        pooler.stop()


def _missing(name: str, reason: str) -> NoReturn:
    if must_be_there(name):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def servers(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The databases of this test process."""
    found = Servers(worker_id, tmp_path_factory.mktemp("servers"))
    with found.stack:
        yield found


@pytest.fixture
def open_database(servers: Servers, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens a database by its name, and checks at the end that the test let go of it and emptied it."""
    opened: list[Database] = []

    def make(name: str) -> Database:
        opened.append(servers.get(name, tmp_path / "database"))
        return opened[-1]

    notices.RECEIVED.clear()
    with pytest.MonkeyPatch.context() as patch:
        _watch_own_connections(patch)
        yield make
    said, notices.RECEIVED[:] = list(notices.RECEIVED), []
    for database in opened:
        try:
            check_connections(database)
        finally:
            database.empty()
    assert not said, f"the server complained: {said}"


def _watch_own_connections(patch: pytest.MonkeyPatch) -> None:
    original, other = PostgresDatabase._open, MysqlDatabase._open
    patch.setattr(PostgresDatabase, "_open", lambda self: notices.watch(original(self)))
    patch.setattr(MysqlDatabase, "_open", lambda self, **changes: notices.watch(other(self, **changes)))


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, open_database: Callable[[str], Database]) -> Database:
    """Each database in turn, migrated and empty."""
    return open_database(request.param)


@pytest.fixture(params=POSTGRES)
def postgres(request: pytest.FixtureRequest, open_database: Callable[[str], Postgres]) -> Postgres:
    """Each PostgreSQL in turn, migrated and empty."""
    return open_database(request.param)


@pytest.fixture(params=MYSQL)
def mysql(request: pytest.FixtureRequest, open_database: Callable[[str], Mysql]) -> Mysql:
    """MySQL and MariaDB in turn, migrated and empty."""
    return open_database(request.param)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, open_database: Callable[[str], Server]) -> Server:
    """Each database that is a server, migrated and empty: two connections wait for each other's rows."""
    return open_database(request.param)


@pytest.fixture
def sqlite(open_database: Callable[[str], Database]) -> Database:
    """A SQLite file, migrated and empty."""
    return open_database("sqlite")


@pytest.fixture
def clock() -> FakeClock:
    """The time of this test."""
    return FakeClock()


@pytest.fixture
def dibs_on(open_database: Callable[..., Any]) -> Iterator[Make]:
    """Makes a `Dibs` on any URL, closed at the end of the test, before its databases are checked."""
    with no_threads_left(), ExitStack() as stack:

        def make(url: str, **options: Any) -> Dibs:
            jobs = Dibs(url, **options)
            stack.callback(jobs.close)
            return jobs

        yield make


@pytest.fixture
def dibs(database: Database, dibs_on: Make) -> Dibs:
    """Jobs on each database, by the database's own clock."""
    return dibs_on(database.url)


@pytest.fixture
def timed(database: Database, dibs_on: Make, clock: FakeClock) -> Dibs:
    """Jobs on each database, by the test's clock."""
    return dibs_on(database.url, clock=clock)
