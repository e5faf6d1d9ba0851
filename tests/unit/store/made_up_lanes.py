"""Lanes that are made up, for a claimer to visit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from dibs.errors import DatabaseUnreachable
from dibs.model.job import Job, Row
from dibs.store.claimer import Claimer
from dibs.store.statement import Rows
from tests.unit.fakes import a_dialect, a_row, drive

NOW = a_row(1_000).available_at


class World:
    """Lanes full of rows, as a claimer meets them: what is claimed is gone."""

    def __init__(self) -> None:
        self.lanes: dict[tuple[str, int], list[Row]] = defaultdict(list)
        self.hidden: set[tuple[str, int]] = set()
        self.settings: dict[str, str] = {}
        self.unreachable: set[str] = set()
        self.due: dict[str, int] = {}
        self.asked: list[Any] = []
        self.claims: list[dict[str, Any]] = []
        self.peeked: list[str] = []

    def fill(self, queue: str, priority: int, *numbers: int) -> None:
        """Put jobs into a lane."""
        self.lanes[queue, priority] += [a_row(number) for number in numbers]

    def call(self, make: Callable[[], Any]) -> Any:
        """Run an operation over these lanes."""
        replies: dict[str, Any] = {
            "lanes": lambda _: [(*lane, NOW) for lane in self.lanes if lane not in self.hidden],
            "discover_lanes": lambda _: list(self.lanes),
            "settings": lambda _: [(queue, False, text) for queue, text in self.settings.items()],
            "peek": self._peek,
            "claim": self._claim,
        }
        driven = drive(make(), replies)
        self.asked += [request for request in driven.names if request != "claim"]
        return driven.answer

    def _peek(self, params: dict[str, Any]) -> Rows:
        batch = params["lanes"]
        self.peeked += batch["queues"]
        marks = zip(batch["marks_at"], batch["mark_ids"], strict=True)
        lanes = zip(batch["queues"], batch["priorities"], marks, strict=True)
        return [
            (queue, priority, bool(self._due(queue, priority, mark)), self.due.get(queue))
            for queue, priority, mark in lanes
        ]

    def _due(self, queue: str, priority: int, mark: tuple[int, str]) -> list[Row]:
        return [row for row in self.lanes[queue, priority] if (row.available_at, row.id) >= mark]

    def _claim(self, params: dict[str, Any]) -> Rows:
        lane = params["queue"], params["priority"]
        self.asked.append((*lane, params["limit"]))
        self.claims.append(params)
        if params["queue"] in self.unreachable:
            raise DatabaseUnreachable("gone.")
        due = self._due(*lane, (params["mark_at"], params["mark_id"]))[: params["limit"]]
        self.lanes[lane] = [row for row in self.lanes[lane] if row not in due]
        return list(due)


def claimer_of(world: World, **options: Any) -> Claimer:
    """A claimer that knows nothing of these lanes yet."""
    return Claimer(world.call, a_dialect(), "worker-1", **options)


def numbers(jobs: list[Job]) -> list[int]:
    """The numbers the jobs were made with."""
    return [int(job.id[-4:]) for job in jobs]


def claims(world: World) -> list[Any]:
    """The claims since the last look: queue, priority and limit of each."""
    found = [each for each in world.asked if isinstance(each, tuple)]
    world.asked.clear()
    return found
