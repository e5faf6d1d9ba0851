"""What the references have in common: the payload, the handler, the loops, and how one is a child process.

`python -m bench.reference.DATABASE drain URL MOST` drains; `... listen URL MOST` answers whoever notifies it.
"""

from __future__ import annotations

import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from bench.core.children import as_child
from dibs.model.json_text import decode

BATCH = 100
PAYLOAD = '{"text": "' + "x" * 88 + '"}'
"""100 bytes of JSON."""
Rows: TypeAlias = Sequence[tuple[str, str]]
"""The id and the payload of each job."""
Connection: TypeAlias = Any
"""Of psycopg or of PyMySQL, in autocommit mode: what they share, DB-API 2.0, has no type of its own."""


def noop(text: str) -> None:
    """The handler."""


def empty(claim: Callable[[], Rows], delete: Callable[[list[str]], object], most: float) -> dict[str, Any]:
    """Run jobs until there are none, or so many are done. Answers when it began and when each batch was done."""
    done, curve = 0, []
    began = time.time()
    while done < most and (rows := claim()):
        for _, payload in rows:
            noop(**decode(payload))
        delete([job_id for job_id, _ in rows])
        done += len(rows)
        curve.append((time.time(), done))
    return {"began": began, "ended": curve[-1][0] if curve else began, "jobs": done, "curve": curve}


class Reference(ABC):
    """A plain table and plain statements, over one connection."""

    driver: ClassVar[str]
    table: ClassVar[str]
    module: ClassVar[str]
    """What `python -m` runs as a child process."""
    in_bulk: ClassVar[str]
    """How many rows are stored at once."""
    hears: ClassVar[str]
    """How an idle loop hears of a new job."""
    tunable: ClassVar[bool]
    """Whether there is a faster layout of the table that dibs uses too."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @classmethod
    @abstractmethod
    def connect(cls, url: str) -> Connection:
        """A connection in autocommit mode."""

    @abstractmethod
    def create(self, tuned: bool = False) -> None:
        """An empty table, made anew."""

    @abstractmethod
    def insert(self, count: int) -> None:
        """Store jobs one by one, each committed before the next."""

    @abstractmethod
    def bulk(self, table: str, count: int) -> None:
        """Store many jobs, in this table or in dibs': the making of the rows included."""

    @abstractmethod
    def spread(self, table: str, count: int, priority: int = 100, delay: int = 0) -> None:
        """Store very many jobs without a client, in this table or in dibs'."""

    @abstractmethod
    def notify(self, n: int) -> None:
        """Store one job that says `n`, and wake who listens."""

    @abstractmethod
    def claim(self) -> Rows:
        """Lease the next jobs."""

    @abstractmethod
    def delete(self, ids: list[str]) -> None:
        """They are done."""

    @abstractmethod
    def wait(self) -> None:
        """There was nothing: wait until it is worth looking again."""

    def drain(self, most: int) -> dict[str, Any]:
        """Run jobs until there are none, or so many are done."""
        return empty(self.claim, self.delete, most)

    def listen(self, most: int) -> dict[str, Any]:
        """Claim, note when the handler starts, wait; until so many have been seen."""
        seen: dict[str, float] = {}
        while len(seen) < most:
            rows = self.claim()
            for _, payload in rows:
                seen[str(decode(payload)["n"])] = time.time()
            if rows:
                self.delete([job_id for job_id, _ in rows])
            else:
                self.wait()
        return {"seen": seen}


def be_child(kind: type[Reference]) -> None:
    """Be a child of a question."""
    mode, url, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    reference = kind(kind.connect(url))
    as_child(lambda: {"drain": reference.drain, "listen": reference.listen}[mode](most))
    reference.connection.close()
