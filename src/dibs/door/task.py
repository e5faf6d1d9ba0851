"""A task: still callable as the plain function, and able to enqueue itself."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from dibs.door.handle import Handle
from dibs.model.job import NewJob
from dibs.model.options import EnqueueOptions, JobOptions
from dibs.task.registry import Definition

if TYPE_CHECKING:
    from typing import Unpack

    from dibs.door.dibs import Dibs

P = ParamSpec("P")
R = TypeVar("R")


class TaskBase(Generic[P, R]):
    """What a task can do whether its function is `def` or `async def`."""

    def __init__(self, dibs: Dibs, definition: Definition, function: Callable[P, Any]) -> None:
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__name__ = getattr(function, "__name__", definition.name)
        self.__qualname__ = getattr(function, "__qualname__", definition.name)
        self.__wrapped__ = function
        self.definition = definition
        self.name = definition.name
        self.function = function
        self._dibs = dibs

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job with these arguments, checked but not stored: for `enqueue_many`."""
        return self._job(self.definition.options, args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job with these arguments."""
        return self._dibs._enqueue(self._job(self.definition.options, args, kwargs), None)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Async form of `enqueue`."""
        return await self._dibs._aenqueue(self._job(self.definition.options, args, kwargs), None)

    def using(self, *, connection: Any = None, **options: Unpack[EnqueueOptions]) -> Using[P, R]:
        """This task with other options, and inside the caller's transaction if a connection is given.

        >>> from dibs import Dibs
        >>> jobs = Dibs("sqlite://")
        >>> @jobs.task
        ... def remind(user: int) -> None: ...
        >>> remind.using(delay="15m", unique="user-7").enqueue(7).created
        True
        """
        return Using(self, self.definition.options.override(options), connection)

    def _job(self, options: JobOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        payload = self.definition.signature.payload(args, kwargs, self._dibs.payload_limit)
        return NewJob(self.name, payload, options)


class Task(TaskBase[P, R]):
    """What `@jobs.task` makes of a function. Calling it runs it here and now; `enqueue` stores a job.

    >>> from dibs import Dibs
    >>> jobs = Dibs("sqlite://")
    >>> @jobs.task
    ... def double(n: int) -> int:
    ...     return 2 * n
    >>> double(4)
    8
    >>> double.enqueue(4).created
    True
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here and now, without any queue."""
        result: R = self.function(*args, **kwargs)
        return result


class AsyncTask(TaskBase[P, R]):
    """A task made of an `async def` function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Make the coroutine that runs the function here and now, without any queue."""
        coroutine: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return coroutine


class Using(Generic[P, R]):
    """A task with options of its own for the next enqueue."""

    def __init__(self, task: TaskBase[P, R], options: JobOptions, connection: Any) -> None:
        self._task = task
        self._options = options
        self._connection = connection

    def job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job with these arguments and options, checked but not stored."""
        return self._task._job(self._options, args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job with these arguments and options."""
        return self._task._dibs._enqueue(self._task._job(self._options, args, kwargs), self._connection)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Async form of `enqueue`."""
        return await self._task._dibs._aenqueue(self._task._job(self._options, args, kwargs), self._connection)


class TaskDecorator:
    """What `@jobs.task(...)` returns; keeps the signature of the function it decorates."""

    def __init__(self, make: Callable[[Callable[..., Any]], Any]) -> None:
        self._make = make

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        """Turn a function into a task."""
        return self._make(function)
