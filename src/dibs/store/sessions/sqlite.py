"""sqlite3 and aiosqlite: dibs' own connections, and those of callers."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import Request
from dibs.store.sessions.base import AsyncCallerSession, CallerSession, OwnTransactions
from dibs.store.statement import Part, Rows


class SqliteSession(CallerSession):
    """A caller's sqlite3 connection."""

    connection: sqlite3.Connection

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        text, _ = part.compiled("named")
        return cursor.execute(text, params).fetchall()


class OwnSqliteSession(OwnTransactions, SqliteSession):
    """A connection of dibs' own. Threads of one process take turns at a lock instead of polling the file's."""

    def __init__(self, connection: sqlite3.Connection, dialect: Dialect, turn: threading.RLock, shared: bool) -> None:
        super().__init__(connection, dialect)
        self.turn = turn
        self.shared = shared

    def execute(self, request: Request) -> Rows:
        """Run a request, alone in this process."""
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
        self._open = True

    def commit(self) -> None:
        """Commit it."""
        self.connection.execute("commit")
        self._end()

    def rollback(self) -> None:
        """Roll it back."""
        if not self._open:
            return
        try:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
        finally:
            self._end()

    def _end(self) -> None:
        self._open = False
        self.turn.release()

    @property
    def broken(self) -> bool:
        """A connection to a file does not break."""
        return False

    def close(self) -> None:
        """Close the connection, unless others use it too."""
        if not self.shared:
            self.connection.close()


class AiosqliteSession(AsyncCallerSession):
    """A caller's aiosqlite connection."""

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, _ = part.compiled("named")
        async with self.connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(text, params)
            return list(await cursor.fetchall())
