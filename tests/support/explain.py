"""What a server plans and does for a statement of an operation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dibs import Dibs
from dibs.store.runner import Operation, Request, run
from dibs.store.sessions.psycopg import OwnPsycopgSession
from dibs.store.statement import Rows, Statement


@dataclass(frozen=True)
class Plan:
    """The plan of one statement, with what it did."""

    root: dict[str, Any]

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Every node of the tree."""
        todo = [self.root]
        while todo:
            node = todo.pop()
            yield node
            todo += node.get("Plans", [])

    def indexes(self) -> set[str]:
        """The indexes it reads."""
        return {node["Index Name"] for node in self.nodes() if "Index Name" in node}

    def read(self) -> float:
        """Rows of tables it looked at, also those it threw away."""
        return sum(
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            for node in self.nodes()
            if "Relation Name" in node and node["Node Type"] != "ModifyTable"
        )

    def sorted(self) -> float:
        """Rows that went through the largest sort."""
        return max((node["Actual Rows"] for node in self.nodes() if "Sort" in node["Node Type"]), default=0)

    def scanned(self) -> set[str]:
        """Tables it reads from end to end."""
        return {node["Relation Name"] for node in self.nodes() if node["Node Type"] == "Seq Scan"}

    def pages(self) -> int:
        """Pages it touched."""
        return int(self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"])


class ExplainingSession(OwnPsycopgSession):
    """Runs an operation on PostgreSQL, and keeps the plan of each of its statements."""

    plans: dict[str, Plan]

    def execute(self, request: Request) -> Rows:
        """Explain the statement, in a subtransaction that is undone, then run it."""
        assert isinstance(request, Statement)
        block = self.dialect.blocks[request.name]
        params = self.dialect.bind(block, request.params)
        [part] = block.parts
        text, _ = part.compiled("pyformat")
        self.connection.execute("savepoint explained")
        cursor = self.connection.execute(f"explain (analyze, buffers, format json) {text}".encode(), params)
        [(document,)] = cursor.fetchall()
        self.plans[request.name] = Plan(document[0]["Plan"])
        self.connection.execute("rollback to explained")
        return super().execute(request)


def explain(jobs: Dibs, operation: Operation[Any]) -> dict[str, Plan]:
    """The plans of the statements of an operation, whose effects are undone."""
    with jobs.store.session() as (own, _):
        assert isinstance(own, OwnPsycopgSession)
        session = ExplainingSession(own.connection, jobs.store.dialect)
        session.plans = {}
        session.connection.execute("begin")
        try:
            session.begin = session.commit = session.rollback = lambda: None  # type: ignore[method-assign]
            session._open = True
            run(session, operation)
        finally:
            session.connection.execute("rollback")
        return session.plans
