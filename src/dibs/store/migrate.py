"""Numbered SQL files that make and change dibs' tables: planned, locked, checksummed, printable."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple, Protocol

from dibs.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dibs.store.statement import FAMILY

_VERSIONED = re.compile(r"/\*!\d+ (.*?) \*/", re.DOTALL)
"""What MySQL keeps for servers from a version on. To others, MariaDB among them, it is a comment."""


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Identifies the text, so that a changed file is noticed."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def needs(self) -> int:
        """The step a dibs must know at least to work with the tables after this one: `-- needs: 3` in its text.

        Most steps only add, and an older worker goes on beside newer ones; a step that breaks it says so.
        """
        found = re.search(r"^-- needs: (\d+)$", self.text, re.MULTILINE)
        return int(found[1]) if found else 1


class Applied(NamedTuple):
    """A step that a database has taken."""

    version: int
    name: str
    checksum: str
    needs: int


class Migrator(Protocol):
    """How a database takes steps: each whole, one program at a time."""

    def applied(self) -> list[Applied] | None:
        """The steps taken so far; None if dibs has never been here."""
        ...

    def apply(self, plan: Callable[[list[Applied]], list[Migration]]) -> list[Migration]:
        """Under a lock: look what has been applied, ask for the rest, apply it."""
        ...


def steps(dialect: str) -> list[Migration]:
    """All steps this version of dibs knows, in order."""
    folder = files("dibs.store").joinpath("migrations", FAMILY.get(dialect, dialect))
    found = []
    for entry in folder.iterdir():
        name = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if name:
            text = entry.read_text(encoding="utf-8")
            found.append(Migration(int(name[1]), name[2], _VERSIONED.sub(r"\1", text) if dialect in FAMILY else text))
    return sorted(found)


def plan(dialect: str, applied: list[Applied]) -> list[Migration]:
    """The steps that are missing. Refuses what a newer dibs has made unfit, and steps whose text has changed."""
    known = {step.version: step for step in steps(dialect)}
    for done in applied:
        if done.needs > max(known):
            raise SchemaTooNew(
                f"The database is at step {done.version} ({done.name}), which a dibs that knows {max(known)} steps "
                "cannot work with."
            )
        if done.version in known and known[done.version].checksum != done.checksum:
            raise DatabaseError(
                f"Step {done.version} ({done.name}) was applied with another text than this dibs has.",
                "Compare versions: a released migration never changes.",
            )
    taken = {done.version for done in applied}
    return [step for step in known.values() if step.version not in taken]


def migrate(dialect: str, migrator: Migrator) -> list[Migration]:
    """Bring the schema up to date. Does nothing if it is. Answers the steps applied."""
    if not plan(dialect, migrator.applied() or []):
        return []
    return migrator.apply(lambda applied: plan(dialect, applied))


def check(dialect: str, migrator: Migrator) -> None:
    """Raise `SchemaOutdated` or `SchemaTooNew` unless the schema is exactly what this version needs."""
    applied = migrator.applied()
    if applied is None:
        raise SchemaOutdated("This database has no dibs tables yet.")
    missing = plan(dialect, applied)
    if missing:
        raise SchemaOutdated(f"The schema lacks step {missing[0].version} ({missing[0].name}).")
