"""mysqlclient's face over PyMySQL: what dibs sees of a MySQLdb connection, and nothing that MySQLdb does not have."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pymysql
from pymysql.cursors import Cursor as PlainCursor


class Connection:
    """Keeps to itself whether a transaction is open, and which bits the server sends."""

    def __init__(self, **given: Any) -> None:
        self._real = pymysql.connect(**given)

    def cursor(self, kind: type[Any] | None = None) -> Any:
        """A cursor, of the kind given."""
        return self._real.cursor(kind and PlainCursor)

    def get_autocommit(self) -> bool:
        """Whether it commits by itself."""
        return self._real.get_autocommit()

    def get_server_info(self) -> str:
        """The server's version."""
        return str(self._real.get_server_info())

    def character_set_name(self) -> str:
        """The connection's character set."""
        return str(self._real.character_set_name())

    def commit(self) -> None:
        """Commit."""
        self._real.commit()

    def rollback(self) -> None:
        """Roll back."""
        self._real.rollback()

    def close(self) -> None:
        """Disconnect."""
        self._real.close()


Connection.__module__ = "MySQLdb.connections"


def connect(**given: Any) -> Connection:
    """As MySQLdb.connect. Its modules are there once it has been called."""
    cursors = ModuleType("MySQLdb.cursors")
    cursors.Cursor = PlainCursor  # type: ignore[attr-defined]
    sys.modules.setdefault("MySQLdb.cursors", cursors)
    return Connection(**given)
