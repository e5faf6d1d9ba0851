"""Every NOTICE and WARNING that a PostgreSQL server sends during a test."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg

RECEIVED: list[str] = []


def record(diagnostic: psycopg.errors.Diagnostic) -> None:
    """psycopg's handler."""
    RECEIVED.append(f"{diagnostic.severity}: {diagnostic.message_primary}")


def record_asyncpg(_connection: Any, message: asyncpg.PostgresLogMessage) -> None:
    """asyncpg's listener."""
    RECEIVED.append(str(message))


def watch(connection: Any) -> Any:
    """Hear what the server says to a connection of psycopg or asyncpg, or to one that SQLAlchemy wraps."""
    driver = getattr(connection, "driver_connection", None) or connection
    if hasattr(driver, "add_notice_handler"):
        driver.add_notice_handler(record)
    elif hasattr(driver, "add_log_listener"):
        driver.add_log_listener(record_asyncpg)
    return connection
