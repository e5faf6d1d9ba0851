"""Verbs that only look: find and count jobs, read the schema's steps and the database's clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from dibs.door.base import Door
from dibs.errors import InvalidOption
from dibs.model.duration import Duration, from_instant, micros
from dibs.model.identity import check_id
from dibs.model.names import check_name
from dibs.model.options import whole
from dibs.model.status import FINAL, Status
from dibs.store import jobs as job_operations
from dibs.store import migrate
from dibs.store import queues as queue_operations
from dibs.store.jobs import Filter
from dibs.store.script import script

_STRETCH = 10_000


class SchemaStep(NamedTuple):
    """A step of the schema and whether this database has taken it."""

    version: int
    name: str
    applied: bool


class Inspecting(Door):
    """Looking changes nothing; an embedded database is not even made."""

    @property
    def exists(self) -> bool:
        """Whether there is a database: False only for an embedded one whose file the first use would make."""
        return self.store.database.exists()

    def find(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
        limit: int = 500,
        cursor: str | None = None,
    ) -> Sequence[str]:
        """Ids of jobs that fit, newest first. Give the last id of a page as `cursor` for the next page.

        >>> from dibs import Dibs
        >>> jobs = Dibs("sqlite://")
        >>> handle = jobs.enqueue("send", queue="mail")
        >>> jobs.find(queue="mail") == [handle.id]
        True
        """
        wanted, before = matching(queue, task, status), None if cursor is None else check_id(cursor)
        return self._find(wanted, whole("limit", limit, _STRETCH), before)

    async def afind(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
        limit: int = 500,
        cursor: str | None = None,
    ) -> Sequence[str]:
        """Async form of `find`."""
        return await self._in_thread(self.find, queue=queue, task=task, status=status, limit=limit, cursor=cursor)

    def count(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
    ) -> int:
        """How many jobs fit, to the last one. Reads them all, in stretches: `stats` is cheaper.

        >>> from dibs import Dibs
        >>> jobs = Dibs("sqlite://")
        >>> _ = jobs.enqueue("send", queue="mail")
        >>> jobs.count(queue="mail", status="ready")
        1
        """
        which, counted, cursor = matching(queue, task, status), 0, None
        while True:
            page = self._find(which, _STRETCH, cursor)
            counted += len(page)
            if len(page) < _STRETCH:
                return counted
            cursor = page[-1]

    async def acount(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
    ) -> int:
        """Async form of `count`."""
        return await self._in_thread(self.count, queue=queue, task=task, status=status)

    def count_prunable(self, queue: str | None = None, older_than: Duration | None = None) -> int:
        """How many jobs `prune` would forget now."""
        counted = 0
        for state in self._call(queue_operations.queues):
            if queue is None or state.name == queue:
                for outcome in sorted(FINAL):
                    keep = state.settings.keep(outcome) if older_than is None else older_than
                    if keep is not None:
                        counted += self._count_old(state.name, outcome, micros(keep, "older_than"))
        return counted

    async def acount_prunable(self, queue: str | None = None, older_than: Duration | None = None) -> int:
        """Async form of `count_prunable`."""
        return await self._in_thread(self.count_prunable, queue, older_than)

    def schema(self) -> Sequence[SchemaStep]:
        """Every step of the schema that this version of dibs knows, and whether the database has taken it.

        Raises `SchemaTooNew` if the database has taken steps this version does not know.

        >>> from dibs import Dibs
        >>> [step.applied for step in Dibs("sqlite://").schema()]
        [False]
        """
        dialect, database = self.store.dialect.name, self.store.database
        applied = self.store.on_session(lambda session: database.migrator(session).applied()) or []
        missing = {step.version for step in migrate.plan(dialect, applied)}
        return [SchemaStep(step.version, step.name, step.version not in missing) for step in migrate.steps(dialect)]

    def schema_script(self, after: int = 0) -> str:
        """The SQL that `migrate` would send to an empty database, or to one at step `after`. Nothing is connected.

        >>> from dibs import Dibs
        >>> "create table dibs_job" in Dibs("sqlite://").schema_script()
        True
        """
        return script(self.store.dialect.name, after)

    async def aschema(self) -> Sequence[SchemaStep]:
        """Async form of `schema`."""
        return await self._in_thread(self.schema)

    def clock(self) -> datetime:
        """The time by the database's clock, which is the one that counts."""
        return from_instant(self._call(job_operations.clock))

    async def aclock(self) -> datetime:
        """Async form of `clock`."""
        return await self._in_thread(self.clock)

    def behind_pooler(self) -> bool:
        """Whether a pooler such as PgBouncer stands in between, and the URL does not say so by ?pooler=transaction."""
        if not self.store.database.audible:
            return False
        return self.store.on_session(self.store.database.pooled)

    async def abehind_pooler(self) -> bool:
        """Async form of `behind_pooler`."""
        return await self._in_thread(self.behind_pooler)

    def _find(self, which: Filter, limit: int, cursor: str | None) -> Sequence[str]:
        return self._call(lambda: job_operations.find(self.store.dialect, which, limit, cursor))

    def _count_old(self, queue: str, outcome: str, keep: int) -> int:
        return self._call(lambda: queue_operations.count_old(self.store.dialect, queue, [outcome], keep))


def matching(queue: str | None, task: str | None, status: Status | str | Iterable[Status | str] | None) -> Filter:
    """The filter that these words name; unknown ones are refused."""
    statuses: frozenset[Status] | None = None
    if status is not None:
        given = [status] if isinstance(status, str) else list(status)
        try:
            statuses = frozenset(Status(item) for item in given)
        except ValueError:
            raise InvalidOption(f"status={status!r} is unknown.", f"Statuses: {', '.join(Status)}.") from None
    return Filter(
        None if queue is None else check_name("queue", queue),
        None if task is None else check_name("task", task),
        statuses,
    )
