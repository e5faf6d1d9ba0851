"""One database with dibs' tables, as a question sees it: how to fill, look, count and empty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from bench.reference.loop import Connection, Reference
from tests.servers.private import PrivateServer


class Database(ABC):
    """dibs' tables, the reference beside them, and a plain connection in autocommit mode to look and to prepare."""

    prefix: ClassVar[str]
    """What stands before the name of each table of dibs."""
    epoch: ClassVar[str]
    """A column as seconds since 1970."""

    def __init__(self, server: PrivateServer, url: str, reference: Reference) -> None:
        self.server = server
        self.url = url
        self.reference = reference
        self.connection: Connection = reference.connection
        self.job = f"{self.prefix}job"
        self.history = f"{self.prefix}history"

    @abstractmethod
    def settle_down(self, *tables: str, vacuum: bool = False) -> None:
        """Fresh statistics and no work left over from preparing: every timed run starts from the same."""

    @abstractmethod
    def old_snapshot(self) -> AbstractContextManager[None]:
        """While the block runs, somebody else holds a snapshot from its beginning."""

    @abstractmethod
    def statements(self) -> int:
        """How many statements others have sent so far: a number to be compared with a later one."""

    def execute(self, text: str, *params: object) -> list[tuple[Any, ...]]:
        """A statement on the plain connection, and its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(text, params or None)
            return list(cursor.fetchall()) if cursor.description else []

    def value(self, text: str, *params: object) -> Any:
        """The first value of a query's first row, None without one."""
        rows = self.execute(text, *params)
        return rows[0][0] if rows else None

    def count(self, table: str) -> int:
        """How many rows there are."""
        return int(self.value(f"select count(*) from {table}"))

    def clear(self) -> None:
        """No job, live or finished."""
        for name in ("job", "history", "attempt_error", "worker"):
            self.forget(f"{self.prefix}{name}")

    def forget(self, table: str) -> None:
        """All its rows are gone."""
        self.execute(f"truncate table {table}")

    def know_lanes(self, *priorities: int) -> None:
        """What an enqueue would have written down beside the job."""
        for priority in priorities:
            self.execute(f"insert into {self.prefix}lane (queue, priority) values ('bench', %s)", priority)

    def place(self, number: int) -> str:
        """The id of the job that so many others will be claimed before, of those with the usual priority."""
        found = self.value(
            f"select id from {self.job} where queue = 'bench' and priority = 100"
            " order by available_at, id limit 1 offset %s",
            number,
        )
        return str(found)

    def lives(self, job_id: str) -> bool:
        """Whether this job is not finished yet, looked up by its key: what is dead around it costs nothing."""
        return bool(self.value(f"select exists (select 1 from {self.job} where id = %s)", job_id))

    def is_empty(self) -> bool:
        """Whether no job is left."""
        return not self.value(f"select exists (select 1 from {self.job})")

    def succeeded(self) -> int:
        """How many were completed at their first attempt."""
        return int(self.value(f"select count(*) from {self.history} where outcome = 'completed' and attempts = 1"))

    def first_claim(self) -> float:
        """When the first of the finished jobs was claimed, by the database's clock."""
        return float(self.value(f"select {self.epoch.format('min(claimed_at)')} from {self.history}"))

    def curve(self) -> list[tuple[float, int]]:
        """How many were finished when, by the database's clock."""
        found = self.execute(
            f"select {self.epoch.format('finished_at')}, sum(count(*)) over (order by finished_at)"
            f"  from {self.history} group by finished_at order by finished_at"
        )
        return [(float(at), int(done)) for at, done in found]
