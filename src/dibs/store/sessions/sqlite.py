"""sqlite3 and aiosqlite: dibs' own connections, and those of callers."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

from dibs.store.dialect import Dialect
from dibs.store.runner import Request
from dibs.store.sessions.base import AsyncCallerSession, CallerSession, Manners, OwnTransactions
from dibs.store.statement import Part, Rows

_PLACE = Part("select file from pragma_database_list where name = 'main'")


class _SqliteManners(Manners):
    """What connections of both kinds tell."""

    def autocommits(self) -> bool:
        """By its `autocommit` (Python 3.12) if that was set, else by its isolation level."""
        mode = getattr(getattr(self.connection, "_conn", self.connection), "autocommit", None)
        return mode if isinstance(mode, bool) else self.connection.isolation_level is None

    def in_transaction(self) -> bool:
        """As SQLite says."""
        return bool(self.connection.in_transaction)

    def as_text(self, rows: Rows) -> Rows:
        """Rows as dibs knows them, also of a connection that reads text as bytes; dibs stores no bytes."""
        if self.connection.text_factory is str:
            return rows
        return [tuple(_decoded(value) for value in row) for row in rows]


def _decoded(value: Any) -> Any:
    return value.decode() if isinstance(value, (bytes, bytearray)) else value


class SqliteSession(_SqliteManners, CallerSession):
    """A caller's sqlite3 connection."""

    connection: sqlite3.Connection

    def place(self) -> str | None:
        """The file; empty if there is none."""
        return str(self.send(_PLACE, {})[0][0])

    def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        text, _ = part.compiled("named")
        return self.as_text(cursor.execute(text, params).fetchall())

    def command(self, text: str) -> None:
        """Run it."""
        self.connection.execute(text)


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
        """Start a writing transaction, alone in this process until it ends."""
        self.turn.acquire()
        try:
            super().begin()
        except BaseException:
            self.turn.release()
            raise

    def commit(self) -> None:
        """Commit it."""
        super().commit()
        self.turn.release()

    def rollback(self) -> None:
        """Roll it back."""
        if self.opened:
            try:
                super().rollback()
            finally:
                self.turn.release()

    @property
    def broken(self) -> bool:
        """A connection to a file does not break."""
        return False

    def close(self) -> None:
        """Close the connection, unless others use it too."""
        if not self.shared:
            with self.turn:
                self.connection.close()


class AiosqliteSession(_SqliteManners, AsyncCallerSession):
    """A caller's aiosqlite connection."""

    async def aplace(self) -> str | None:
        """The file; empty if there is none."""
        return str((await self.send(_PLACE, {}))[0][0])

    async def send(self, part: Part, params: dict[str, Any]) -> Rows:
        """Run one SQL text."""
        text, _ = part.compiled("named")
        async with self.connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(text, params)
            return self.as_text(list(await cursor.fetchall()))

    async def catch_up(self) -> None:
        """Its thread does one thing after the other, also what nobody waits for any more."""
        async with self.connection.cursor():
            pass

    async def command(self, text: str) -> None:
        """Run it."""
        async with self.connection.execute(text):
            pass
