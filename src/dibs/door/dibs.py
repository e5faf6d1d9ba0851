"""`Dibs`: one application's jobs in one database."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

from dibs.door import settings
from dibs.door.base import Door, refuse_while_imported
from dibs.door.enqueueing import Enqueueing
from dibs.door.operating import Operating
from dibs.door.task import AsyncTask, P, R, Task, TaskDecorator
from dibs.door.working import Working
from dibs.errors import InvalidOption
from dibs.model.backoff import Backoff
from dibs.model.duration import Duration
from dibs.model.job import NewJob
from dibs.model.options import EnqueueOptions, JobOptions
from dibs.store.dialect import Clock
from dibs.store.reaper import Reaper
from dibs.task.registry import Definition, RunIn, define

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Unpack

    from dibs.worker import Worker
    from dibs.worker.options import WorkerOptions


class TaskOptions(TypedDict, total=False):
    """Options of `@jobs.task(...)`: defaults for its jobs, and how its handler runs."""

    name: str | None
    queue: str
    priority: int
    max_attempts: int
    timeout: Duration
    backoff: Backoff
    max_crashes: int
    run_in: RunIn


class Dibs(Enqueueing, Working, Operating):
    """One application's jobs in one database. Every verb has an asynchronous form with an `a` in front.

    `url` is postgresql://user:password@host/database, or the same with mysql:// or mariadb://, or sqlite:///file.db,
    or sqlite:// (memory). Without one it is $DIBS_URL, else `url` of [tool.dibs] in pyproject.toml, else ./dibs.db.
    Nothing is connected before first use.

    >>> jobs = Dibs("sqlite://")
    >>> @jobs.task(queue="mail", max_attempts=3)
    ... def send_digest(user_id: int) -> str:
    ...     return f"digest for {user_id}"
    >>> handle = send_digest.enqueue(7)
    >>> with jobs.worker():
    ...     handle.result(timeout=10)
    'digest for 7'
    """

    def __init__(self, url: str | None = None, *, payload_limit: int | None = None, clock: Clock | None = None) -> None:
        limit = settings.payload_limit(payload_limit)
        Door.__init__(self, str(settings.find("url", url).value), limit, clock)
        self._lanes_seen = set()
        self._quiet_until = 0.0 if self.store.dialect.can.ring_sleepers else math.inf
        self._reaper = Reaper(self._call, self.store.dialect)
        self._reap_due = 0.0

    def __repr__(self) -> str:
        return f"<Dibs {self.url}, {len(self.tasks)} tasks>"

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, /, **options: Unpack[TaskOptions]) -> TaskDecorator: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a task of a function: it can still be called as before, and now also enqueued.

        >>> jobs = Dibs("sqlite://")
        >>> @jobs.task(queue="mail", timeout="10m", backoff=Backoff.fixed("30s"))
        ... async def send(to: str) -> None: ...
        >>> send.enqueue("a@example.com").created
        True
        """
        unknown = options.keys() - TaskOptions.__annotations__.keys()
        if unknown:
            raise InvalidOption(
                f"{sorted(unknown)[0]!r} is not an option of a task.",
                f"Options: {', '.join(TaskOptions.__annotations__)}.",
            )

        def make(decorated: Callable[..., Any]) -> Task[Any, Any] | AsyncTask[Any, Any]:
            definition = self._define(decorated, options)
            kind = AsyncTask if definition.is_async else Task
            return kind(self, definition, decorated)

        return TaskDecorator(make) if function is None else make(function)

    def register(self, handlers: Mapping[str, Callable[..., Any]], **options: Unpack[TaskOptions]) -> None:
        """Register handlers by name. A handler with one parameter called `job` gets the whole job.

        >>> jobs = Dibs("sqlite://")
        >>> def mail_digest(job): return job.payload["user_id"]
        >>> jobs.register({"mail_digest": mail_digest})
        """
        for name, function in handlers.items():
            self._define(function, {**options, "name": name})

    def job(self, task: str, payload: Any = None, **options: Unpack[EnqueueOptions]) -> NewJob:
        """A job for a task by its name, checked but not stored: for `enqueue_many`."""
        return self._named(task, payload, dict(options))

    def worker(
        self, queues: Sequence[str] | Mapping[str, int] | None = None, **options: Unpack[WorkerOptions]
    ) -> Worker:
        """A worker for these queues (all if None): `.run()` blocks, `with` runs it in the background.

        `queues={"mail": 10}` runs at most ten jobs of that queue at once in this process.
        """
        if queues is not None and not queues:
            raise InvalidOption("queues is empty: such a worker would never run a job.", "Leave it out for all queues.")
        # Imported here, so that a program that only enqueues carries no worker.
        from dibs.worker import Worker

        return Worker(self.store, self.tasks, queues=queues, prepare=self._prepare_for_work, **options)

    def _prepare_for_work(self) -> None:
        refuse_while_imported()
        if not self._ready:
            self._prepare()
        self.check_schema()

    def _define(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Definition:
        stored = ("queue", "priority", "max_attempts")
        defaults = JobOptions().override({name: options[name] for name in stored if name in options})
        definition = define(
            function,
            options.get("name"),
            defaults,
            options.get("run_in", "auto"),
            options.get("timeout"),
            options.get("backoff"),
            options.get("max_crashes"),
        )
        definition.options = defaults.limited(definition.max_crashes)
        self.tasks.add(definition)
        return definition
