"""What a question needs to know of a database server, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import ClassVar

from bench.grounds.database import Database
from bench.reference.loop import Connection, Reference
from dibs import Dibs
from tests.servers.private import PrivateServer


class Ground(ABC):
    """One kind and version of a server, and how a database is made there."""

    kind: ClassVar[str]
    """Whose bars count, see `bench/bars.py`."""
    family: str
    """Its name for people."""
    version: str
    reference: ClassVar[type[Reference]]
    databases: ClassVar[type[Database]]

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.family} {self.version}"

    @abstractmethod
    def server(self) -> PrivateServer:
        """One that is not started yet, with its defaults for durability and 1 GB of cache for pages."""

    @abstractmethod
    def drop(self, admin: Connection, name: str) -> None:
        """Make sure that there is no such database."""

    def drivers(self) -> list[type[Reference]]:
        """The reference over each driver that is installed."""
        return [self.reference]

    @contextmanager
    def database(self, server: PrivateServer, name: str) -> Iterator[Database]:
        """A new database with dibs' tables, dropped afterwards."""
        with self._made(server, name), closing(Dibs(server.url(name))) as jobs:
            jobs.migrate()
            with closing(self.reference.connect(server.url(name))) as connection:
                yield self.databases(server, server.url(name), self.reference(connection))

    @contextmanager
    def _made(self, server: PrivateServer, name: str) -> Iterator[None]:
        with closing(self.reference.connect(server.url())) as admin, admin.cursor() as cursor:
            self.drop(admin, name)
            cursor.execute(f"create database {name}")
            try:
                yield
            finally:
                self.drop(admin, name)
