"""Where a question is asked: a private server and its databases, a folder, and how long to take."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from bench.core import machine
from dibs import Dibs
from tests.servers import PostgresServer

PATIENCE = 45.0
"""Seconds a question waits, at most, for others to leave the machine alone."""


@dataclass
class Stage:
    """What a question needs. The server is started when first asked for."""

    major: int = 18
    quick: bool = False
    folder: Path = field(default_factory=Path)
    _server: PostgresServer | None = None
    _closing: ExitStack = field(default_factory=ExitStack)

    def say(self, line: str) -> None:
        """Tell how it goes, beside the results."""
        print(f"    {line}", file=sys.stderr, flush=True)

    def few(self, many: int, quick: int) -> int:
        """A number of jobs or rounds: fewer in a quick run."""
        return quick if self.quick else many

    def quiet(self) -> None:
        """Wait until others leave the machine alone, or patience is over."""
        others = machine.wait_for_quiet(2.0 if self.quick else PATIENCE)
        if others > 0.25:
            self.say(f"others use {others:.1f} cores")

    @property
    def server(self) -> PostgresServer:
        """PostgreSQL with its defaults for durability."""
        if self._server is None:
            self._server = self._closing.enter_context(PostgresServer(self.major, durable=True, shared_buffers="1GB"))
        return self._server

    @property
    def started(self) -> bool:
        """Whether a question has asked for the server yet."""
        return self._server is not None

    def cpu_seconds(self) -> float:
        """Processor time of this run so far: ours, our ended children's, and the server's."""
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        return ours + (self._server.cpu_seconds() if self._server else 0.0)

    @property
    def log(self) -> Path:
        """What child processes say on standard error."""
        return self.folder / "children.log"

    @contextmanager
    def database(self, name: str) -> Iterator[Database]:
        """A new database with dibs' tables, dropped afterwards."""
        with psycopg.connect(self.server.url(), autocommit=True) as admin:
            admin.execute(f"drop database if exists {name} with (force)")
            admin.execute(f"create database {name}")
        url = self.server.url(name)
        jobs = Dibs(url)
        jobs.migrate()
        try:
            with psycopg.connect(url, autocommit=True, application_name="bench") as connection:
                yield Database(self.server, url, jobs, connection)
        finally:
            jobs.close()
            with psycopg.connect(self.server.url(), autocommit=True) as admin:
                admin.execute(f"drop database if exists {name} with (force)")

    @contextmanager
    def sqlite(self, name: str) -> Iterator[str]:
        """The path of a SQLite file, deleted afterwards."""
        path = self.folder / f"{name}.db"
        try:
            yield str(path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


@dataclass
class Database:
    """One database with dibs' tables: the application's handle, and a plain connection to look and to prepare."""

    server: PostgresServer
    url: str
    jobs: Dibs
    connection: psycopg.Connection[Any]

    def execute(self, text: str, *params: object) -> psycopg.Cursor[Any]:
        """A statement on the plain connection."""
        return self.connection.execute(text.encode(), params or None)

    def value(self, text: str, *params: object) -> Any:
        """The first value of a query's first row, None without one."""
        row = self.execute(text, *params).fetchone()
        return None if row is None else row[0]

    def settle_down(self, *tables: str, vacuum: bool = False) -> None:
        """Fresh statistics and no write-out left over from preparing: every timed run starts from the same."""
        for table in tables:
            self.execute(f"{'vacuum (analyze)' if vacuum else 'analyze'} {table}")
        self.execute("checkpoint")

    def clear(self) -> None:
        """No job, live or finished."""
        self.execute("truncate dibs.job, dibs.history, dibs.attempt_error, dibs.worker")


@contextmanager
def opened(major: int, quick: bool) -> Iterator[Stage]:
    """A stage that cleans up after itself."""
    with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=_scratch()) as folder, ExitStack() as closing:
        yield Stage(major, quick, Path(folder), _closing=closing)


def _scratch() -> str | None:
    """On a disk: /tmp may be memory, where a flush costs nothing."""
    return os.environ.get("DIBS_BENCH_FOLDER") or ("/var/tmp" if Path("/var/tmp").is_dir() else None)
