"""sqlite3 and aiosqlite: dibs' own connections, and those of callers."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import AsyncSession, Request
from dibs.store.statement import Copy, Rows


class SqliteSession:
    """A caller's sqlite3 connection: statements join its transaction."""

    bulk = False

    def __init__(self, connection: sqlite3.Connection, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    def execute(self, request: Request) -> Rows:
        """Run one statement."""
        if isinstance(request, Copy):
            raise TypeError("SQLite has no bulk load")
        block = self.dialect.blocks[request.name]
        cursor = self.connection.cursor()
        cursor.row_factory = None
        text, _ = block.compiled("named")
        return cursor.execute(text, self.dialect.bind(block, request.params)).fetchall()

    def begin(self) -> None:
        """The transaction is the caller's."""

    def commit(self) -> None:
        """The transaction is the caller's."""

    def rollback(self) -> None:
        """The transaction is the caller's."""


class OwnSqliteSession(SqliteSession):
    """A connection of dibs' own. Threads of one process take turns at a lock instead of polling the file's."""

    def __init__(self, connection: sqlite3.Connection, dialect: Dialect, turn: threading.RLock, shared: bool) -> None:
        super().__init__(connection, dialect)
        self.turn = turn
        self.shared = shared

    def execute(self, request: Request) -> Rows:
        """Run one statement, alone in this process."""
        with self.turn:
            return super().execute(request)

    def begin(self) -> None:
        """Start a writing transaction: a reading one that writes later could only fail."""
        self.turn.acquire()
        try:
            self.connection.execute("begin immediate")
        except BaseException:
            self.turn.release()
            raise

    def commit(self) -> None:
        """Commit it."""
        self.connection.execute("commit")
        self.turn.release()

    def rollback(self) -> None:
        """Roll it back."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
        finally:
            self.turn.release()

    @property
    def broken(self) -> bool:
        """A connection to a file does not break."""
        return False

    def close(self) -> None:
        """Close the connection, unless others use it too."""
        if not self.shared:
            self.connection.close()


class AiosqliteSession(AsyncSession):
    """A caller's aiosqlite connection: statements join its transaction."""

    bulk = False

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect

    async def execute(self, request: Request) -> Rows:
        """Run one statement."""
        if isinstance(request, Copy):
            raise TypeError("SQLite has no bulk load")
        block = self.dialect.blocks[request.name]
        text, _ = block.compiled("named")
        async with self.connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(text, self.dialect.bind(block, request.params))
            return list(await cursor.fetchall())
