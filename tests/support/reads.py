"""What MySQL or MariaDB does for each statement of an operation, as the session counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dibs import Dibs
from dibs.store.runner import Operation, Request, run
from dibs.store.sessions.mysql import OwnMysqlSession
from dibs.store.statement import Rows, Statement


@dataclass(frozen=True)
class Reads:
    """The counters of one statement, all its parts together."""

    counters: dict[str, int]

    def total(self) -> int:
        """Rows and index entries that were read, by whatever way; also those of the batch itself."""
        return sum(number for name, number in self.counters.items() if name.startswith("Handler_read"))

    def scanned(self) -> int:
        """Rows read one after the other from a table: json_table's, and those of a table read from end to end."""
        return self.counters["Handler_read_rnd_next"]

    def sorted(self) -> int:
        """Rows that went through a sort."""
        return self.counters["Sort_rows"]


class CountingSession(OwnMysqlSession):
    """Runs an operation, and keeps what each of its statements cost."""

    reads: dict[str, Reads]

    def execute(self, request: Request) -> Rows:
        """Run the statement between two looks at the counters."""
        assert isinstance(request, Statement)
        idle, before = self._counters(), self._counters()  # to look at the counters moves them, too
        rows = self.sent(request)
        after = self._counters()
        self.reads[request.name] = Reads({name: after[name] - 2 * before[name] + idle[name] for name in after})
        return rows

    def _counters(self) -> dict[str, int]:
        """Not set to zero by FLUSH STATUS: that would commit."""
        self.command("show session status where variable_name like 'Handler%' or variable_name like 'Sort%'")
        return {name: int(number) for name, number in self._cursor.fetchall()}

    def begin(self) -> None:
        """It has begun: all of it is undone at the end."""

    commit = rollback = begin


def count_reads(jobs: Dibs, operation: Operation[Any]) -> dict[str, Reads]:
    """What the statements of an operation read; their effects are undone."""
    with jobs.store.session() as (own, _):
        assert isinstance(own, OwnMysqlSession)
        session = CountingSession(own.connection, jobs.store.dialect)
        session.reads = {}
        session.command("start transaction")
        try:
            run(session, operation)
        finally:
            session.command("rollback")
        return session.reads
