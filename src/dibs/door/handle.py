"""A handle to one job: what enqueue answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from dibs.door.patience import Patience
from dibs.errors import JobFailed, NotFound, ResultTimeout
from dibs.model.duration import Duration, seconds
from dibs.model.job import Enqueued
from dibs.model.status import Status
from dibs.store import jobs as job_operations

if TYPE_CHECKING:
    from dibs.door.dibs import Dibs

R = TypeVar("R")
_FIRST_PAUSE = 0.002


class Handle(Generic[R]):
    """One job: its id, whether this enqueue made it, and its status and result when you ask.

    >>> from dibs import Dibs
    >>> jobs = Dibs("sqlite://")
    >>> @jobs.task
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> handle = add.enqueue(1, 2)
    >>> with jobs.worker():
    ...     handle.result(timeout=10)
    3
    """

    __slots__ = ("_dibs", "created", "id", "replaced")

    def __init__(self, dibs: Dibs, job_id: str, created: bool = True, replaced: bool = False) -> None:
        self._dibs = dibs
        self.id = job_id
        self.created = created
        self.replaced = replaced

    def __repr__(self) -> str:
        return f"<Handle {self.id}{'' if self.created else ' (existing)'}>"

    def __eq__(self, other: object) -> bool:
        """Two handles of one job are equal."""
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def status(self) -> Status:
        """Where the job stands now."""
        return self._ended().status

    async def astatus(self) -> Status:
        """Async form of `status`."""
        return await self._dibs._in_thread(self.status)

    def result(self, timeout: Duration | None = None) -> R:
        """Wait for the job to end and return its result.

        Raises `JobFailed` if it ended without one, `ResultTimeout` if it takes longer than `timeout`. The result
        has been through JSON: a tuple comes back as a list, a dataclass as a dict. While the database is away it
        goes on trying, until `timeout` is over, or for a minute if there is none.
        """
        patience, limit = _patience(timeout)
        for pause in patience.pauses(_FIRST_PAUSE):
            ended = self._look(patience)
            if ended is not None and ended.status.final:
                return self._result(ended)
            time.sleep(pause)
        raise ResultTimeout(f"Job {self.id} has not ended after {limit:g} seconds.")

    async def aresult(self, timeout: Duration | None = None) -> R:
        """Async form of `result`."""
        patience, limit = _patience(timeout)
        for pause in patience.pauses(_FIRST_PAUSE):
            ended = await self._dibs._in_thread(self._look, patience)
            if ended is not None and ended.status.final:
                return self._result(ended)
            await asyncio.sleep(pause)
        raise ResultTimeout(f"Job {self.id} has not ended after {limit:g} seconds.")

    def cancel(self) -> bool:
        """Cancel the job if nobody holds it yet. Answers whether it was cancelled."""
        return self._dibs.cancel(self.id) == 1

    async def acancel(self) -> bool:
        """Async form of `cancel`."""
        return await self._dibs._in_thread(self.cancel)

    def retry(self) -> bool:
        """Run the job again after it has ended, or at once if it waits. Answers whether it will."""
        return self._dibs.retry(self.id) == 1

    async def aretry(self) -> bool:
        """Async form of `retry`."""
        return await self._dibs._in_thread(self.retry)

    def _look(self, patience: Patience) -> job_operations.Ended | None:
        return patience.look(self._ended)

    def _ended(self) -> job_operations.Ended:
        found = self._dibs._call(lambda: job_operations.ended(self.id))
        if found is None:
            raise NotFound(
                f"There is no job {self.id}.",
                "It was pruned, or its enqueue was rolled back or has not been committed yet.",
            )
        return found

    def _result(self, ended: job_operations.Ended) -> R:
        if ended.status is not Status.COMPLETED:
            raise JobFailed(
                f"Job {self.id} is {ended.status}: {ended.last_error or 'no error recorded'}.",
                f"See all attempts: dibs job show {self.id}",
                status=ended.status,
            )
        return cast(R, ended.result)


class Handles(Sequence[Handle[Any]]):
    """The handles of a bulk load, in the order asked. Each is made when it is looked at: most never are."""

    __slots__ = ("_answers", "_dibs")

    def __init__(self, dibs: Dibs, answers: Sequence[Enqueued]) -> None:
        self._dibs = dibs
        self._answers = answers

    @overload
    def __getitem__(self, place: int) -> Handle[Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Handles: ...
    def __getitem__(self, place: int | slice) -> Handle[Any] | Handles:
        """One handle, or some."""
        if isinstance(place, slice):
            return Handles(self._dibs, self._answers[place])
        return Handle(self._dibs, *self._answers[place][:3])

    def __len__(self) -> int:
        return len(self._answers)

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence of the same handles in the same order, a list for example."""
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<Handles of {len(self)} jobs>"


def _patience(timeout: Duration | None) -> tuple[Patience, float]:
    limit = None if timeout is None else seconds(timeout, "timeout")
    return Patience(limit), limit or 0.0
