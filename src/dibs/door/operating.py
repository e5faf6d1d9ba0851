"""Verbs of operators: look at jobs and queues, and act on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from dibs.door.inspecting import Inspecting, matching
from dibs.errors import InvalidOption, NotFound
from dibs.model.duration import Duration, lasting, micros, to_instant
from dibs.model.identity import check_id
from dibs.model.job import JobRecord
from dibs.model.json_text import clean
from dibs.model.names import check_name
from dibs.model.options import whole
from dibs.model.outcome import MESSAGE_LIMIT
from dibs.model.settings import QueueOptions, checked
from dibs.model.status import FINAL, WAITING, Status
from dibs.store import jobs as job_operations
from dibs.store import queues as queue_operations
from dibs.store import roll
from dibs.store.jobs import Filter
from dibs.store.queues import Counts, QueueState
from dibs.store.roll import WorkerState

if TYPE_CHECKING:
    from typing import Unpack

_PAGE = 500


class Operating(Inspecting):
    """Everything the command line and the dashboard can do, they do through these."""

    def get(self, job_id: str) -> JobRecord:
        """One job with all its errors, live or finished, or `NotFound`.

        >>> from dibs import Dibs
        >>> jobs = Dibs("sqlite://")
        >>> jobs.get(jobs.enqueue("mail").id).status
        <Status.READY: 'ready'>
        """
        known = check_id(job_id)
        found = self._call(lambda: job_operations.get(self.store.dialect, [known]))
        if not found:
            raise NotFound(f"There is no job {job_id}.", "It was never committed, or it was pruned.")
        errors = self._call(lambda: job_operations.errors(known))
        return replace(found[0], errors=errors)

    async def aget(self, job_id: str) -> JobRecord:
        """Async form of `get`."""
        return await self._in_thread(self.get, job_id)

    def list(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Sequence[JobRecord]:
        """Jobs that fit, newest first. Give the last id of a page as `cursor` for the next page."""
        wanted = matching(queue, task, status)
        before = None if cursor is None else check_id(cursor)
        most = whole("limit", limit, _PAGE)
        ids = self._call(lambda: job_operations.find(self.store.dialect, wanted, most, before))
        return self._call(lambda: job_operations.get(self.store.dialect, ids))

    async def alist(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Sequence[JobRecord]:
        """Async form of `list`."""
        return await self._in_thread(self.list, queue=queue, task=task, status=status, limit=limit, cursor=cursor)

    def cancel(self, *ids: str, queue: str | None = None, task: str | None = None) -> int:
        """Cancel waiting jobs: those named, or all of a queue or task. Answers how many."""
        return self._act(ids, matching(queue, task, WAITING), lambda chosen: self._end(chosen, "cancelled"))

    async def acancel(self, *ids: str, queue: str | None = None, task: str | None = None) -> int:
        """Async form of `cancel`."""
        return await self._in_thread(self.cancel, *ids, queue=queue, task=task)

    def discard(self, *ids: str, queue: str | None = None, task: str | None = None) -> int:
        """End waiting jobs as discarded. Answers how many."""
        return self._act(ids, matching(queue, task, WAITING), lambda chosen: self._end(chosen, "discarded"))

    async def adiscard(self, *ids: str, queue: str | None = None, task: str | None = None) -> int:
        """Async form of `discard`."""
        return await self._in_thread(self.discard, *ids, queue=queue, task=task)

    def retry(
        self,
        *ids: str,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] = Status.DEAD,
    ) -> int:
        """Run jobs again with all their attempts before them: those named (finished, or waiting for a retry),
        or all dead ones (`status`) of a queue or task. Answers how many.
        """
        return self._act(ids, matching(queue, task, status), self._again)

    async def aretry(
        self,
        *ids: str,
        queue: str | None = None,
        task: str | None = None,
        status: Status | str | Iterable[Status | str] = Status.DEAD,
    ) -> int:
        """Async form of `retry`."""
        return await self._in_thread(self.retry, *ids, queue=queue, task=task, status=status)

    def run_now(self, *ids: str) -> int:
        """Make waiting jobs due at once. Answers how many were moved."""
        known = [check_id(job_id) for job_id in ids]
        return len(self._call(lambda: job_operations.run_now(self.store.dialect, known)))

    async def arun_now(self, *ids: str) -> int:
        """Async form of `run_now`."""
        return await self._in_thread(self.run_now, *ids)

    def reschedule(self, *ids: str, run_at: datetime | str) -> int:
        """Make waiting jobs due at another time. Answers how many were moved."""
        known = [check_id(job_id) for job_id in ids]
        due = to_instant(run_at)
        return len(self._call(lambda: job_operations.reschedule(self.store.dialect, known, due)))

    async def areschedule(self, *ids: str, run_at: datetime | str) -> int:
        """Async form of `reschedule`."""
        return await self._in_thread(self.reschedule, *ids, run_at=run_at)

    def pause(self, queue: str, reason: str | None = None) -> None:
        """Stop claims from a queue, everywhere and at once. What runs goes on."""
        name = check_name("queue", queue)
        said = None if reason is None else clean(str(reason), MESSAGE_LIMIT)
        self._call(lambda: queue_operations.pause(name, said))

    async def apause(self, queue: str, reason: str | None = None) -> None:
        """Async form of `pause`."""
        await self._in_thread(self.pause, queue, reason)

    def resume(self, queue: str) -> None:
        """Allow claims from a queue again."""
        name = check_name("queue", queue)
        self._call(lambda: queue_operations.resume(self.store.dialect, name))

    async def aresume(self, queue: str) -> None:
        """Async form of `resume`."""
        await self._in_thread(self.resume, queue)

    def configure(self, queue: str, **options: Unpack[QueueOptions]) -> None:
        """Change live settings of a queue; workers follow within seconds. None brings the default back.

        >>> from dibs import Backoff, Dibs
        >>> Dibs("sqlite://").configure("mail", lease="5m", backoff=Backoff.fixed("30s"), retention={"dead": "90d"})
        """
        name, changes = check_name("queue", queue), checked(dict(options))
        if changes.get("timeout") is not None:
            lasting(changes["timeout"], "timeout")
        self._call(lambda: queue_operations.configure(name, changes))
        self._settings_due = 0.0

    async def aconfigure(self, queue: str, **options: Unpack[QueueOptions]) -> None:
        """Async form of `configure`."""
        await self._in_thread(self.configure, queue, **options)

    def queues(self) -> Sequence[QueueState]:
        """Every queue that is configured or holds jobs, with its settings and whether it is paused."""
        return self._call(queue_operations.queues)

    async def aqueues(self) -> Sequence[QueueState]:
        """Async form of `queues`."""
        return await self._in_thread(self.queues)

    def workers(self) -> Sequence[WorkerState]:
        """The workers that have been heard of lately."""
        return self._call(roll.workers)

    async def aworkers(self) -> Sequence[WorkerState]:
        """Async form of `workers`."""
        return await self._in_thread(self.workers)

    def stats(self, span: Duration = "1h") -> Counts:
        """Live jobs by queue, priority and state, and what finished within `span`. Counts stop at 100,000 a lane."""
        recent = micros(span, "span")
        return self._call(lambda: queue_operations.counts(recent))

    async def astats(self, span: Duration = "1h") -> Counts:
        """Async form of `stats`."""
        return await self._in_thread(self.stats, span)

    def prune(self, queue: str | None = None, older_than: Duration | None = None) -> int:
        """Forget finished jobs past their retention (or ended longer than `older_than` ago). Answers how many.

        Only final rows are ever deleted, by the time they finished. Dead jobs stay until a retention is set for
        them or `older_than` is given.
        """
        pruned = 0
        for state in self.queues():
            if queue is None or state.name == queue:
                pruned += sum(self._prune_queue(state, older_than))
        return pruned

    async def aprune(self, queue: str | None = None, older_than: Duration | None = None) -> int:
        """Async form of `prune`."""
        return await self._in_thread(self.prune, queue, older_than)

    def _prune_queue(self, state: QueueState, older_than: Duration | None) -> Iterable[int]:
        for outcome in sorted(FINAL):
            keep = state.settings.keep(outcome) if older_than is None else older_than
            if keep is not None:
                yield self._prune_all(state.name, outcome, micros(keep, "older_than"))

    def _prune_all(self, queue: str, outcome: str, keep: int) -> int:
        pruned = 0
        while True:
            gone = self._call(lambda: queue_operations.prune(self.store.dialect, queue, [outcome], keep))
            pruned += gone
            if gone < queue_operations.PRUNE_BATCH:
                return pruned

    def _end(self, ids: Sequence[str], outcome: str) -> int:
        return len(self._call(lambda: job_operations.end_waiting(self.store.dialect, ids, outcome)))

    def _again(self, ids: Sequence[str]) -> int:
        alive = self._call(lambda: job_operations.requeue(self.store.dialect, ids))
        waiting = [job_id for job_id in ids if job_id not in alive]
        moved = self._call(lambda: job_operations.run_now(self.store.dialect, waiting)) if waiting else set()
        return len(alive) + len(moved)

    def _page(self, wanted: Filter, before: str | None) -> Sequence[str]:
        return self._call(lambda: job_operations.find(self.store.dialect, wanted, _PAGE, before))

    def _act(self, ids: Sequence[str], wanted: Filter, act: Callable[[Sequence[str]], int]) -> int:
        """Do something to the jobs named, or, page by page, to all that fit."""
        if ids:
            return act([check_id(job_id) for job_id in ids])
        if wanted.queue is None and wanted.task is None:
            raise InvalidOption("This would act on every job.", "Name ids, a queue or a task.")
        done = 0
        before: str | None = None
        while True:
            page = self._page(wanted, before)
            if not page:
                return done
            done, before = done + act(page), page[-1]
