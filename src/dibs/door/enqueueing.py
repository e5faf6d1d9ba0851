"""Verbs that put jobs in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dibs.door.base import Door, refuse_while_imported
from dibs.door.handle import Handle, Handles
from dibs.errors import DatabaseUnreachable, InvalidInput
from dibs.model.identity import new_id, new_ids
from dibs.model.job import Enqueued, NewJob
from dibs.model.names import check_name
from dibs.model.options import EnqueueOptions, JobOptions
from dibs.store import enqueue as operations
from dibs.store.roll import QUIET
from dibs.store.runner import Operation
from dibs.store.sessions.recognise import recognise

if TYPE_CHECKING:
    from typing import Unpack

    from dibs.door.dibs import Dibs

T = TypeVar("T")


class Enqueueing(Door):
    """Enqueue one, many, by name, and inside the caller's transaction."""

    _lanes_seen: operations.Lanes
    _quiet_until: float
    """Until then (of the monotonic clock) nobody sleeps, as far as is known, or nobody can be rung."""

    def enqueue(
        self, task: str, payload: Any = None, *, connection: Any = None, **options: Unpack[EnqueueOptions]
    ) -> Handle[Any]:
        """Store a job for a task by its name, which need not be registered here.

        >>> from dibs import Dibs
        >>> Dibs("sqlite://").enqueue("mail_digest", {"user_id": 7}, queue="mail", delay="15m").created
        True
        """
        return self._enqueue(self._named(task, payload, dict(options)), connection)

    async def aenqueue(
        self, task: str, payload: Any = None, *, connection: Any = None, **options: Unpack[EnqueueOptions]
    ) -> Handle[Any]:
        """Async form of `enqueue`."""
        return await self._aenqueue(self._named(task, payload, dict(options)), connection)

    def enqueue_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> Sequence[Handle[Any]]:
        """Store many jobs in one transaction, in bulk; answers handles in the order given.

        >>> from dibs import Dibs
        >>> jobs = Dibs("sqlite://")
        >>> @jobs.task
        ... def resize(image: int) -> None: ...
        >>> len(jobs.enqueue_many([resize.job(n) for n in range(1000)]))
        1000
        """
        batch, ids = _batch(jobs)
        if connection is not None:
            session = recognise(connection, self.store.dialect)
            answers = self.store.call_on(connection, self._many(session.bulk, batch, ids))
        else:
            self._add_lanes(batch)
            answers = self._load(batch, ids)
            self.store.ring()
        return self._handles(answers)

    def _load(self, jobs: Sequence[NewJob], ids: Sequence[str]) -> list[Enqueued]:
        again = partial(operations.enqueue_many_again, self.store.dialect, jobs, ids)
        return self._surely(partial(self._many, True, jobs, ids), again)

    async def aenqueue_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> Sequence[Handle[Any]]:
        """Async form of `enqueue_many`."""
        if connection is None:
            return await self._in_thread(self.enqueue_many, jobs)
        batch, ids = _batch(jobs)
        session = recognise(connection, self.store.dialect)
        answers = await self.store.acall_on(connection, self._many(session.bulk, batch, ids))
        return self._handles(answers)

    def _named(self, task: str, payload: Any, options: dict[str, Any]) -> NewJob:
        check_name("task", task)
        definition = self.tasks.find(task)
        base = definition.options if definition else _DEFAULTS
        text = self._payload_text(task, {} if payload is None else payload)
        return NewJob(task, text, base.override(options))

    def _enqueue(self, job: NewJob, connection: Any) -> Handle[Any]:
        job_id = new_id()
        began = time.monotonic()
        ring = began >= self._quiet_until
        if connection is not None:
            return self._handle(self.store.call_on(connection, operations.enqueue(job, job_id, ring)), began)
        if (job.options.queue, job.options.priority) not in self._lanes_seen:
            self._add_lanes((job,))
        dialect = self.store.dialect
        answer = self._surely(
            lambda: operations.enqueue(job, job_id, ring), lambda: operations.enqueue_again(dialect, job, job_id)
        )
        self.store.ring()
        return self._handle(answer, began)

    async def _aenqueue(self, job: NewJob, connection: Any) -> Handle[Any]:
        if connection is None:
            return await self._in_thread(self._enqueue, job, None)
        began = time.monotonic()
        operation = operations.enqueue(job, new_id(), began >= self._quiet_until)
        return self._handle(await self.store.acall_on(connection, operation), began)

    def _surely(self, first: Callable[[], Operation[T]], again: Callable[[], Operation[T]]) -> T:
        """Store something once, also when an answer is lost: every further try may find it stored already."""
        try:
            return self._call(first, again)
        except DatabaseUnreachable:
            return self._call(again)

    def _many(self, bulk: bool, jobs: Sequence[NewJob], ids: Sequence[str]) -> Operation[list[Enqueued]]:
        return operations.enqueue_many(self.store.dialect, bulk, jobs, ids)

    def _add_lanes(self, jobs: Sequence[NewJob]) -> None:
        """Remember new lanes, outside any caller's transaction: there a concurrent producer would have to wait."""
        new = operations.lanes_of(jobs) - self._lanes_seen
        if new:
            refuse_while_imported()
            self._call(lambda: operations.add_lanes(new))
            self._lanes_seen |= new

    def _handle(self, answer: Enqueued, began: float) -> Handle[Any]:
        if answer.quiet:
            self._quiet_until = began + QUIET
        return Handle(cast("Dibs", self), answer.id, answer.created, answer.replaced)

    def _handles(self, answers: list[Enqueued]) -> Sequence[Handle[Any]]:
        dibs = cast("Dibs", self)
        return Handles(dibs, answers)


def _batch(jobs: Iterable[NewJob]) -> tuple[Sequence[NewJob], list[str]]:
    """The jobs of a list, or of a generator, which can be read only once; and an id for each."""
    if not isinstance(jobs, Iterable):
        raise InvalidInput(f"enqueue_many got {jobs!r}, which is no list of jobs.", _MAKE_JOBS)
    batch = jobs if isinstance(jobs, (list, tuple)) else list(jobs)
    if set(map(type, batch)) - {NewJob}:
        stranger = next(job for job in batch if type(job) is not NewJob)
        raise InvalidInput(f"enqueue_many got {stranger!r}, which is no job.", _MAKE_JOBS)
    return batch, new_ids(len(batch)) if batch else []


_DEFAULTS = JobOptions()
_MAKE_JOBS = "Make jobs with task.job(...) or jobs.job(...)."
