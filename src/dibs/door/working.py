"""Verbs of a worker's loop, for those who write their own: dequeue, ack, nack, heartbeat."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from dibs.door.base import Door
from dibs.door.claiming import Claimers
from dibs.door.patience import Patience
from dibs.errors import DibsError, InvalidOption, LeaseLost
from dibs.model.backoff import DEFAULT_BACKOFF
from dibs.model.duration import Duration, lasting, micros, seconds
from dibs.model.job import DEFAULT_MAX_ATTEMPTS, Job
from dibs.model.json_text import clean
from dibs.model.names import check_key, check_name
from dibs.model.options import whole
from dibs.model.outcome import (
    MESSAGE_LIMIT,
    Attempt,
    Back,
    Policy,
    Problem,
    after_error,
    after_success,
    describe,
)
from dibs.store.claim import known_lanes
from dibs.store.claimer import Claimer
from dibs.store.reaper import BUDGET, Reaper
from dibs.store.settle import Settlement, beat, settle

_REAP_PAUSE = 1.0
_FIRST_PAUSE = 0.01
LIMIT = 1_000
MOST_RECLAIMED = 1_000_000
_log = logging.getLogger("dibs.door")


class Working(Door):
    """The queue without the worker runtime. Every change is fenced by (id, token)."""

    _claimers: Claimers
    _claiming: threading.Lock
    """Held while somebody claims: a claimer is used by one thread at a time. An event loop never waits for it."""
    _reaper: Reaper
    _reap_due: float

    def _renew(self) -> None:
        super()._renew()
        self._claimers = Claimers()
        self._claiming = threading.Lock()

    def dequeue(
        self,
        queues: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
        limit: int = 1,
        lease: Duration | None = None,
        worker: str | None = None,
        wait: Duration = 0,
    ) -> list[Job]:
        """Lease up to `limit` due jobs, highest priority first; waits up to `wait` for the first one.

        Expired leases are taken back before the answer is empty, so neither cron nor a running worker is needed.
        While the database is away it goes on trying until `wait` is over.

        >>> from dibs import Dibs
        >>> jobs = Dibs("sqlite://")
        >>> _ = jobs.enqueue("mail", {"to": "a@example.com"})
        >>> [job] = jobs.dequeue(lease="30s")
        >>> job.payload
        {'to': 'a@example.com'}
        >>> jobs.ack(job)
        """
        claimer, most = self._claimer(queues, tasks, lease, worker), whole("limit", limit, LIMIT)
        patience = Patience(seconds(wait, "wait"))
        for pause in patience.pauses(_FIRST_PAUSE):
            found = self._try(patience, claimer, most, not pause)
            if found:
                return found
            time.sleep(pause)
        return []

    async def adequeue(
        self,
        queues: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
        limit: int = 1,
        lease: Duration | None = None,
        worker: str | None = None,
        wait: Duration = 0,
    ) -> list[Job]:
        """Async form of `dequeue`."""
        claimer, most = self._claimer(queues, tasks, lease, worker), whole("limit", limit, LIMIT)
        patience = Patience(seconds(wait, "wait"))
        for pause in patience.pauses(_FIRST_PAUSE):
            claim = self._start(self._try, patience, claimer, most, not pause)
            found = await self._unless_cancelled(claim, claimer)
            if found:
                return found
            await asyncio.sleep(pause)
        return []

    def ack(self, job: Job, result: Any = None) -> None:
        """The job is done. Its row moves to the history with the result, in one transaction."""
        _refuse_lost(self.ack_many([(job, result)]))

    async def aack(self, job: Job, result: Any = None) -> None:
        """Async form of `ack`."""
        await self._in_thread(self.ack, job, result)

    def nack(self, job: Job, error: BaseException | str, retry_in: Duration | None = None) -> None:
        """The attempt failed: the job runs again after its backoff (or `retry_in`), or is dead after its last one."""
        _refuse_lost(self.nack_many([(job, error)], retry_in))

    async def anack(self, job: Job, error: BaseException | str, retry_in: Duration | None = None) -> None:
        """Async form of `nack`."""
        await self._in_thread(self.nack, job, error, retry_in)

    def heartbeat(self, job: Job, extend: Duration = 60) -> bool:
        """Extend the lease to `extend` from now. False if it is lost: stop working on the job."""
        return not self.heartbeat_many([job], extend)

    async def aheartbeat(self, job: Job, extend: Duration = 60) -> bool:
        """Async form of `heartbeat`."""
        return await self._in_thread(self.heartbeat, job, extend)

    def snooze(self, job: Job, delay: Duration) -> None:
        """Put the job back for later; the attempt does not count."""
        _refuse_lost(self.snooze_many([job], delay))

    async def asnooze(self, job: Job, delay: Duration) -> None:
        """Async form of `snooze`."""
        await self._in_thread(self.snooze, job, delay)

    def ack_many(self, jobs: Iterable[Job | tuple[Job, Any]]) -> list[Job]:
        """Acknowledge many jobs, or (job, result) pairs, in one statement. Answers the jobs whose lease was lost."""
        pairs = [item if isinstance(item, tuple) else (item, None) for item in jobs]
        finals = [after_success(_attempt(job), result, self.payload_limit) for job, result in pairs]
        return self._settle([job for job, _ in pairs], finals)

    async def aack_many(self, jobs: Iterable[Job | tuple[Job, Any]]) -> list[Job]:
        """Async form of `ack_many`."""
        return await self._in_thread(self.ack_many, jobs)

    def nack_many(self, jobs: Iterable[tuple[Job, BaseException | str]], retry_in: Duration | None = None) -> list[Job]:
        """Fail many (job, error) pairs. Answers the jobs whose lease was lost."""
        pairs = list(jobs)
        wait = None if retry_in is None else micros(retry_in, "retry_in")
        settlements = [after_error(_attempt(job), self._policy(job), _problem(error), wait) for job, error in pairs]
        return self._settle([job for job, _ in pairs], settlements)

    async def anack_many(
        self, jobs: Iterable[tuple[Job, BaseException | str]], retry_in: Duration | None = None
    ) -> list[Job]:
        """Async form of `nack_many`."""
        return await self._in_thread(self.nack_many, jobs, retry_in)

    def heartbeat_many(self, jobs: Iterable[Job], extend: Duration = 60) -> list[Job]:
        """Extend many leases. Answers the jobs whose lease was lost."""
        held = list(jobs)
        lease = micros(extend, "extend")
        lost = self._call(lambda: beat(self.store.dialect, [(job.id, job.token, 0) for job in held], lease))
        return _lost(held, lost)

    async def aheartbeat_many(self, jobs: Iterable[Job], extend: Duration = 60) -> list[Job]:
        """Async form of `heartbeat_many`."""
        return await self._in_thread(self.heartbeat_many, jobs, extend)

    def snooze_many(self, jobs: Iterable[Job], delay: Duration) -> list[Job]:
        """Put many jobs back for later. Answers the jobs whose lease was lost."""
        held = list(jobs)
        wait = micros(delay, "delay")
        return self._settle(held, [Back(job.id, job.token, wait, refund=1) for job in held])

    async def asnooze_many(self, jobs: Iterable[Job], delay: Duration) -> list[Job]:
        """Async form of `snooze_many`."""
        return await self._in_thread(self.snooze_many, jobs, delay)

    def reclaim(self, limit: int = 1_000) -> int:
        """Take expired leases back, at most `limit`, wherever they are. Answers how many."""
        most = whole("limit", limit, MOST_RECLAIMED)
        with self._claiming:
            return self._reap(most, budget=float("inf"))

    async def areclaim(self, limit: int = 1_000) -> int:
        """Async form of `reclaim`."""
        return await self._in_thread(self.reclaim, limit)

    def _claimer(
        self,
        queues: Sequence[str] | None,
        tasks: Sequence[str] | None,
        lease: Duration | None,
        worker: str | None,
    ) -> Claimer:
        if isinstance(queues, str) or isinstance(tasks, str):
            raise InvalidOption("queues and tasks are lists of names.", 'Write queues=["mail"].')
        chosen = None if queues is None else frozenset(check_name("queue", name) for name in queues)
        names = None if tasks is None else tuple(check_name("task", name) for name in tasks)
        who = check_key("worker", worker) or f"{socket.gethostname()}:{os.getpid()}"
        span = None if lease is None else lasting(lease, "lease")
        make = partial(Claimer, self._call, self.store.dialect, who, chosen, names, span)
        return self._claimers.get((chosen, names, span, who), make)

    async def _unless_cancelled(self, claim: Future[list[Job] | None], claimer: Claimer) -> list[Job] | None:
        """What a claim brings. If nobody waits for it any more, it goes back, as soon as it is there."""
        try:
            return await asyncio.wrap_future(claim)
        except asyncio.CancelledError:
            if not claim.cancel():
                self._start(self._hand_back, claim, claimer)
            raise

    def _hand_back(self, claim: Future[list[Job] | None], claimer: Claimer) -> None:
        """Put claimed jobs back in their places, and their attempts do not count."""
        jobs = (claim.exception() is None and claim.result()) or []
        try:
            self._settle(jobs, [Back(job.id, job.token, 0, refund=1, at=job.row[7]) for job in jobs])
        except DibsError as error:
            _log.warning("what a cancelled adequeue has claimed was not handed back: its leases run out: %s", error)
            return
        with self._claiming:
            claimer.rewind(jobs)

    def _try(self, patience: Patience, claimer: Claimer, limit: int, last: bool) -> list[Job] | None:
        return patience.look(lambda: self._claim(claimer, limit, thorough=last))

    def _claim(self, claimer: Claimer, limit: int, thorough: bool) -> list[Job]:
        """One try; the last one of a dequeue is thorough."""
        with self._claiming:
            claimer.hurry()
            found = claimer.claim(limit, thorough)
            if not found and time.monotonic() >= self._reap_due and self._reap(LIMIT):
                found = claimer.claim(limit, thorough)
            return found

    def _reap(self, limit: int, budget: float = BUDGET) -> int:
        lanes, _ = self._call(lambda: known_lanes(None))
        taken = self._reaper.sweep(lanes, limit, budget)
        self._reap_due = time.monotonic() + max(_REAP_PAUSE, self._reaper.pause)
        return taken

    def _policy(self, job: Job) -> Policy:
        """How a job is retried: what it says itself, else its task, else its queue, else the default."""
        settings = self._queue_settings(job.queue)
        definition = self.tasks.find(job.task)
        task_backoff = definition.backoff if definition else None
        return Policy(
            job.max_attempts or settings.max_attempts or DEFAULT_MAX_ATTEMPTS,
            backoff=job.settings.backoff or task_backoff or settings.backoff or DEFAULT_BACKOFF,
        )

    def _settle(self, jobs: Sequence[Job], settlements: Sequence[Settlement]) -> list[Job]:
        attempts = {job.id: (job.attempts, job.locked_by) for job in jobs}
        once = list({(item.id, item.token): item for item in settlements}.values())
        return _lost(jobs, self._call(lambda: settle(self.store.dialect, once, attempts)))


def _lost(jobs: Sequence[Job], ids: set[str]) -> list[Job]:
    """The jobs that are lost: by their id, and every older claim of a job that is here twice."""
    newest: dict[str, int] = {}
    for job in jobs:
        newest[job.id] = max(job.token, newest.get(job.id, 0))
    return [job for job in jobs if job.id in ids or job.token < newest[job.id]]


def _refuse_lost(lost: Sequence[Job]) -> None:
    if lost:
        raise LeaseLost(f"Job {lost[0].id} (token {lost[0].token}) is not held by this claim any more.", id=lost[0].id)


def _attempt(job: Job) -> Attempt:
    return Attempt(job.id, job.token, job.attempts, job.crashes)


def _problem(error: BaseException | str) -> Problem:
    if isinstance(error, BaseException):
        return describe(error)
    return Problem("error", "Error", clean(str(error), MESSAGE_LIMIT))
