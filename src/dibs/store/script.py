"""The schema as one SQL script, for those who keep their own migration tool."""

from __future__ import annotations

from dibs.store.migrate import steps
from dibs.store.migrators import POSTGRES_BOOK, SQLITE_BOOK

_BOOKS = {"postgres": (POSTGRES_BOOK, "dibs.migration"), "sqlite": (SQLITE_BOOK, "dibs_migration")}
"""The statements that make the book of steps, and its name."""
_ENTRY = "insert into {} (version, name, checksum, needs) values ({}, '{}', '{}', {});"


def script(dialect: str, after: int = 0) -> str:
    """One transaction that takes the steps after `after` and writes them down, so that dibs knows they were taken."""
    book, table = _BOOKS[dialect]
    parts = ["begin;", *(f"{statement};" for statement in book)]
    for step in steps(dialect):
        if step.version > after:
            parts += [step.text.strip(), _ENTRY.format(table, step.version, step.name, step.checksum, step.needs)]
    return "\n\n".join([*parts, "commit;"]) + "\n"
