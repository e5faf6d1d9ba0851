"""What the database says at the end: read with plain SQL, past all of dibs' own code."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from chaos.history import Claim
from chaos.plain import MYSQL, Plain

LIVE = "select id, token, attempts, crashes, payload from {}job"
FINAL = "select id, token, attempts, crashes, payload, outcome, result, {finished_at}, max_attempts from {}history"
ERRORS = "select job_id, token, attempt, kind, {at} from {}attempt_error order by job_id, token"
CRASHES = ("lease lost", "crash")
"""Failures that count against the crash budget."""
DAYS = 2
_MYSQL_MICROS = "timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', {})"
MICROS = {
    "sqlite": "{}",
    "postgresql": "(extract(epoch from {}) * 1000000)::bigint",
    **dict.fromkeys(MYSQL, _MYSQL_MICROS),
}
"""An instant as microseconds since 1970."""
EARLIER = {
    "sqlite": "created_at - {} * 86400000000",
    "postgresql": "created_at - {} * interval '1 day'",
    **dict.fromkeys(MYSQL, "created_at - interval {} day"),
}


@dataclass(frozen=True, slots=True)
class Live:
    """A job that has not ended."""

    id: str
    n: int | None
    token: int
    attempts: int
    crashes: int


@dataclass(frozen=True, slots=True)
class Final:
    """A job that has ended."""

    id: str
    n: int | None
    token: int
    attempts: int
    crashes: int
    outcome: str
    result: Any
    finished_at: int
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a claim of a job did not end it. `at` is the database's time in microseconds."""

    job: str
    token: int
    attempt: int
    kind: str
    at: int

    @property
    def claim(self) -> Claim:
        """The claim that did not end it."""
        return Claim(self.job, self.token)


@dataclass(slots=True)
class Tables:
    """All rows about jobs."""

    live: list[Live] = field(default_factory=list)
    final: list[Final] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def rows(self) -> list[Live | Final]:
        """All jobs, live and ended."""
        return [*self.live, *self.final]

    def losses(self) -> list[Failure]:
        """The leases that were taken back."""
        return [failure for failure in self.failures if failure.kind == "lease lost"]

    def stored(self) -> dict[Claim, int]:
        """When the outcome of each claim was stored that its own holder gave."""
        failed = {found.claim: found.at for found in self.failures if found.kind not in CRASHES}
        return failed | {Claim(row.id, row.token): row.finished_at for row in self.final}


def read(url: str) -> Tables:
    """Read a database."""
    with Plain(url) as database:
        micros = {name: MICROS[database.kind].format(name) for name in ("finished_at", "at")}
        texts = [text.format(database.prefix, **micros) for text in (LIVE, FINAL, ERRORS)]
        live, final, failures = (database.rows(text) for text in texts)
    return Tables(
        [Live(str(row[0]), _number(row[4]), *row[1:4]) for row in live],
        [
            Final(str(row[0]), _number(row[4]), row[1], row[2], row[3], row[5], _json(row[6]), row[7], row[8])
            for row in final
        ],
        [Failure(str(row[0]), *row[1:]) for row in failures],
    )


def shown(url: str) -> list[list[str]]:
    """The live jobs that have been claimed before, every column as text: what nobody works on shows here."""
    with Plain(url) as database:
        rows = database.rows(f"select * from {database.prefix}job where token > 0 order by id")
    return [[str(value) for value in row] for row in rows]


def make_old(url: str) -> None:
    """Let all live jobs have waited for some days: longer than finished ones are kept."""
    with Plain(url) as database:
        database.rows(f"update {database.prefix}job set created_at = {EARLIER[database.kind].format(DAYS)}")


def broken_pages(url: str) -> str:
    """What SQLite says about a file that is not whole; nothing about a server, which checks itself."""
    with Plain(url) as database:
        if database.kind != "sqlite":
            return ""
        [(told,)] = database.rows("pragma integrity_check")
    return "" if told == "ok" else str(told)


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _number(payload: Any) -> int | None:
    """The number by which a producer knows the job it asked for, whatever id the job got."""
    found = _json(payload)
    return found.get("n") if isinstance(found, dict) else None
