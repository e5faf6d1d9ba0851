"""What every verb of the door needs: the store, the tasks, and a way to wait without blocking an event loop."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from dibs.errors import DibsError
from dibs.model.json_text import encode
from dibs.model.settings import QueueSettings
from dibs.store import fork, migrate
from dibs.store import queues as queue_operations
from dibs.store.access import Store, open_database
from dibs.store.dialect import Clock
from dibs.store.runner import Operation
from dibs.task.registry import Registry

T = TypeVar("T")
_ASYNC_THREADS = 8
_SETTINGS_AGE = 2.0


def refuse_while_imported() -> None:
    """What a module does while it is imported, it does again in each handler process that imports it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DibsError(
            "A handler process imports this module to find its handler, and the module enqueues or starts a worker.",
            'Put that part of the program under: if __name__ == "__main__":',
        )


class Door:
    """Base of `Dibs`."""

    def __init__(self, url: str, payload_limit: int, clock: Clock | None) -> None:
        self.store = Store(open_database(url, clock))
        self.tasks = Registry()
        self.payload_limit = payload_limit
        self._ready = False
        self._settings: dict[str, tuple[bool, QueueSettings]] = {}
        self._settings_due = 0.0
        self._renew()
        fork.watch(self, lambda door: door._renew())

    def _renew(self) -> None:
        """Locks and threads, made anew in a forked child.

        `_lock` guards the threads; an event loop may wait for it. `_preparing` is held while tables are made.
        """
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    @property
    def url(self) -> str:
        """The database's URL, without its password."""
        return self.store.database.shown_url

    def _call(self, make: Callable[[], Operation[T]], again: Callable[[], Operation[T]] | None = None) -> T:
        """Run an operation on a connection of dibs' own; if it is played again, what `again` makes."""
        if not self._ready:
            self._prepare()
        return self.store.call(make, again)

    def _prepare(self) -> None:
        """The embedded database makes its own tables; others are only ever migrated by `dibs db migrate`, and a schema
        that this version cannot work with is refused before anything is stored in it."""
        with self._preparing:
            if self._ready:
                return
            if self.store.dialect.can.make_its_own_tables:
                self.migrate()
            else:
                self.check_schema()
            self._ready = True

    async def _in_thread(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run blocking work beside the event loop. Cancelling the caller does not undo what was sent."""
        return await asyncio.wrap_future(self._start(work, *args, **kwargs))

    def _start(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
        """Start blocking work in a thread."""
        context = copy_context()
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_ASYNC_THREADS, thread_name_prefix="dibs-async")
            return self._threads.submit(context.run, partial(work, *args, **kwargs))

    def migrate(self) -> list[str]:
        """Bring dibs' tables up to date; does nothing if they are. Answers the names of the steps taken.

        >>> from dibs import Dibs
        >>> Dibs("sqlite://").migrate()
        ['core']
        """
        dialect, database = self.store.dialect.name, self.store.database
        applied = self.store.on_session(lambda session: migrate.migrate(dialect, database.migrator(session)))
        self._ready = True
        return [step.name for step in applied]

    async def amigrate(self) -> list[str]:
        """Async form of `migrate`."""
        return await self._in_thread(self.migrate)

    def check_schema(self) -> None:
        """Raise `SchemaOutdated` or `SchemaTooNew` unless the tables are exactly what this version needs."""
        dialect, database = self.store.dialect.name, self.store.database
        self.store.on_session(lambda session: migrate.check(dialect, database.migrator(session)))

    async def acheck_schema(self) -> None:
        """Async form of `check_schema`."""
        await self._in_thread(self.check_schema)

    def close(self) -> None:
        """Close idle connections and threads. The object can be used again afterwards."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True)
        self.store.close()

    async def aclose(self) -> None:
        """Async form of `close`."""
        await asyncio.to_thread(self.close)

    def _queue_settings(self, queue: str) -> QueueSettings:
        """Settings of a queue, at most two seconds old."""
        if time.monotonic() >= self._settings_due:
            self._settings = self._call(queue_operations.settings)
            self._settings_due = time.monotonic() + _SETTINGS_AGE
        return self._settings.get(queue, (False, QueueSettings()))[1]

    def _payload_text(self, task: str, payload: Any) -> str:
        """A payload given by name: any JSON value; checked against the task if it is known here."""
        text = encode(payload, f"payload of {task!r}", self.payload_limit)
        definition = self.tasks.find(task)
        if definition is not None:
            definition.signature.check(text)
        return text.decode()
