"""Databases that are hurt: a SQLite file, a server that is there, or one of the run's own, durable and crashable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from chaos.plain import Plain
from tests.servers import MariadbServer, MysqlServer, PostgresServer
from tests.servers.private import PrivateServer

_MAKERS: dict[str, Callable[..., PrivateServer]] = {
    **{f"postgres{major}": partial(PostgresServer, major) for major in (18, 17, 16, 15, 14)},
    "mysql97": MysqlServer,
    "mariadb1011": MariadbServer,
}
SERVERS = tuple(_MAKERS)
NAMES = (*SERVERS, "sqlite")


class Place(Protocol):
    """Where databases for runs are made."""

    name: str
    served: bool

    def make(self, name: str) -> str:
        """Make an empty database, and answer its URL."""
        ...

    def remove(self, name: str) -> None:
        """Remove it again."""
        ...

    def ways(self, url: str) -> Sequence[str]:
        """The URLs by which one database can be reached; processes take them in turn."""
        ...

    def crash(self, seconds: float) -> None:
        """Take the server down as a power cut would, and start it again after a while. Only where there is one."""
        ...


def _nobody(_seconds: float) -> None:
    raise RuntimeError("this database is not this run's to crash")


class Served:
    """A server of any kind; a database for each run."""

    served = True

    def __init__(self, name: str, url: str, crash: Callable[[float], None] = _nobody) -> None:
        self.name = name
        self.crash = crash
        self._url = url

    def make(self, name: str) -> str:
        self._do(f"create database {name}")
        return urlsplit(self._url)._replace(path=f"/{name}").geturl()

    def remove(self, name: str) -> None:
        forced = " with (force)" if self._url.startswith("postgresql:") else ""
        self._do(f"drop database {name}{forced}")

    def ways(self, url: str) -> Sequence[str]:
        return [url]

    def _do(self, statement: str) -> None:
        with Plain(self._url) as server:
            server.rows(statement)


class Sqlite:
    """A folder; a file for each run. There is no server: its users are what can crash."""

    name = "sqlite"
    served = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.crash = _nobody

    def make(self, name: str) -> str:
        return f"sqlite:///{self._folder / name}.db"

    def ways(self, url: str) -> Sequence[str]:
        return [url]

    def remove(self, name: str) -> None:
        for path in self._folder.glob(f"{name}.db*"):
            path.unlink()


@contextmanager
def own_server(name: str) -> Iterator[Place]:
    """A server of this run's own: private, flushing to disk as in production, gone at the end of the block."""
    with _MAKERS[name](durable=True) as server:

        def crash(seconds: float) -> None:
            server.kill()
            time.sleep(seconds)
            server.start()

        yield Served(name, server.url(), crash)


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Place]:
    """A place by its name, for as long as the block runs."""
    if name == "sqlite":
        yield Sqlite(folder)
        return
    with own_server(name) as place:
        yield place
