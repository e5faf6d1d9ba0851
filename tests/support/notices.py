"""Every NOTICE and WARNING that a server sends during a test."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg
import pymysql

RECEIVED: list[str] = []


def record(diagnostic: psycopg.errors.Diagnostic) -> None:
    """psycopg's handler."""
    RECEIVED.append(f"{diagnostic.severity}: {diagnostic.message_primary}")


def record_asyncpg(_connection: Any, message: asyncpg.PostgresLogMessage) -> None:
    """asyncpg's listener."""
    RECEIVED.append(str(message))


def watch(connection: Any) -> Any:
    """Hear what the server says to a connection of psycopg, asyncpg or PyMySQL, or to one that SQLAlchemy wraps."""
    driver = getattr(connection, "driver_connection", None) or connection
    if hasattr(driver, "add_notice_handler"):
        driver.add_notice_handler(record)
    elif hasattr(driver, "add_log_listener"):
        driver.add_log_listener(record_asyncpg)
    elif isinstance(driver, pymysql.Connection):
        _ask_after_each_statement(driver)
    return connection


def _ask_after_each_statement(connection: Any) -> None:
    """MySQL and MariaDB only tell how many warnings a statement brought; its result waits while they are read."""
    query = connection.query

    def watched(*given: Any, **named: Any) -> Any:
        answer, result = query(*given, **named), connection._result
        if result.warning_count:
            RECEIVED.extend(f"{row[0]}: {row[1:]} {given[0][:200]!r}" for row in connection.show_warnings())
            connection._result = result
        return answer

    connection.query = watched
