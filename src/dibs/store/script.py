"""The schema as one SQL script, for those who keep their own migration tool."""

from __future__ import annotations

from dibs.store.migrate import steps
from dibs.store.migrators import POSTGRES_BOOK, SQLITE_BOOK

_BOOKS = {
    "postgres": (POSTGRES_BOOK, "insert into dibs.migration (version, name, checksum) values ({}, '{}', '{}');"),
    "sqlite": (SQLITE_BOOK, "insert into dibs_migration (version, name, checksum) values ({}, '{}', '{}');"),
}


def script(dialect: str, after: int = 0) -> str:
    """One transaction that takes the steps after `after` and writes them down, so that dibs knows they were taken."""
    book, entry = _BOOKS[dialect]
    parts = ["begin;", *(f"{statement};" for statement in book)]
    for step in steps(dialect):
        if step.version > after:
            parts += [step.text.strip(), entry.format(step.version, step.name, step.checksum)]
    return "\n\n".join([*parts, "commit;"]) + "\n"
