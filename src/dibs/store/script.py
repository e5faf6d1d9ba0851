"""The schema as one SQL script, for those who keep their own migration tool."""

from __future__ import annotations

from dibs.store.migrate import steps
from dibs.store.migrators import POSTGRES_BOOK, SQLITE_BOOK
from dibs.store.mysql_migrator import MYSQL_BOOK
from dibs.store.statement import FAMILY

_ENTRY = "insert into {} (version, name, checksum, needs) values ({{}}, '{{}}', '{{}}', {{}});"
_BOOKS = {
    "postgres": (POSTGRES_BOOK, _ENTRY.format("dibs.migration"), True),
    "sqlite": (SQLITE_BOOK, _ENTRY.format("dibs_migration"), True),
    "mysql": (
        MYSQL_BOOK,
        "insert into dibs_migration (version, name, checksum, needs, applied_at)"
        " values ({}, '{}', '{}', {}, utc_timestamp(6));",
        False,
    ),
}
"""The statements that make the book of steps, an entry of it, and whether a transaction holds all of it together."""


def script(dialect: str, after: int = 0) -> str:
    """Takes the steps after `after` and writes them down, so that dibs knows they were taken."""
    book, entry, together = _BOOKS[FAMILY.get(dialect, dialect)]
    parts = [*(f"{statement};" for statement in book)]
    for step in steps(dialect):
        if step.version > after:
            parts += [step.text.strip(), entry.format(step.version, step.name, step.checksum, step.needs)]
    return "\n\n".join(["begin;", *parts, "commit;"] if together else parts) + "\n"
