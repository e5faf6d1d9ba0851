"""The tasks of one application, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from dibs.errors import InvalidOption, UnknownTask
from dibs.model.backoff import Backoff, check_backoff
from dibs.model.duration import lasting
from dibs.model.names import check_name
from dibs.model.options import JobOptions, check_attempts
from dibs.task.signature import Signature

RunIn = Literal["auto", "thread", "loop", "process"]
_PLACES = ("auto", "thread", "loop", "process")


@dataclass(slots=True)
class Definition:
    """A task as the worker needs it: the handler, where it runs and how it is retried."""

    name: str
    function: Callable[..., Any]
    options: JobOptions
    run_in: Literal["thread", "loop", "process"]
    is_async: bool = False
    timeout: float | None = None
    backoff: Backoff | None = None
    max_crashes: int | None = None
    _signature: Signature | None = field(default=None, repr=False)

    @property
    def signature(self) -> Signature:
        """Made at first use, when all names in the annotations can be resolved."""
        if self._signature is None:
            self._signature = Signature(self.function, self.name)
        return self._signature


def define(
    function: Callable[..., Any],
    name: str | None,
    options: JobOptions,
    run_in: RunIn = "auto",
    timeout: Any = None,
    backoff: Backoff | None = None,
    max_crashes: int | None = None,
) -> Definition:
    """A definition from a function and what its decorator says."""
    if not callable(function):
        raise InvalidOption(f"{function!r} cannot be a task.", "Decorate a function.")
    if run_in not in _PLACES:
        raise InvalidOption(f"run_in={run_in!r} is unknown.", f"Choose {', '.join(_PLACES)}.")
    is_async = awaited(function)
    if is_async and run_in == "thread":
        raise InvalidOption("An async def handler cannot run_in='thread'.", "Leave run_in out.")
    if not is_async and run_in == "loop":
        raise InvalidOption("A def handler cannot run_in='loop': it would block it.", "Write async def.")
    if run_in == "process" and not _importable(function):
        raise InvalidOption(
            f"{function!r} cannot run_in='process': a child process could not import it by its name.",
            "Make it a function at the top of a module, or leave run_in out.",
        )
    place = ("loop" if is_async else "thread") if run_in == "auto" else run_in
    return Definition(
        check_name("task", getattr(function, "__name__", None) if name is None else name),
        function,
        options,
        place,
        is_async,
        None if timeout is None else lasting(timeout, "timeout"),
        None if backoff is None else check_backoff(backoff),
        None if max_crashes is None else check_attempts(max_crashes, "max_crashes"),
    )


def awaited(function: Callable[..., Any]) -> bool:
    """Whether a call gives a coroutine: of an `async def`, also one bound, partial, or `__call__` of an object."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _importable(function: Callable[..., Any]) -> bool:
    """Whether a module and a path of names lead to it: not to a lambda, a closure, an instance or its method."""
    path, module = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    owner = getattr(function, "__self__", None)
    reached = isinstance(path, str) and "<" not in path and isinstance(module, str)
    return reached and (owner is None or inspect.isclass(owner) or inspect.ismodule(owner))


class Registry:
    """Finds a task by its name. A worker runs what is in here and puts everything else back untouched."""

    def __init__(self) -> None:
        self._tasks: dict[str, Definition] = {}

    def add(self, definition: Definition) -> None:
        """Register a task; a second function under one name is a mistake worth an error."""
        known = self._tasks.get(definition.name)
        if known is not None and not _same(known.function, definition.function):
            raise InvalidOption(
                f"Two functions are registered as task {definition.name!r}.",
                'Name one of them: @jobs.task(name="...").',
            )
        self._tasks[definition.name] = definition

    def find(self, name: str) -> Definition | None:
        """The task of that name, if it is registered here."""
        return self._tasks.get(name)

    def get(self, name: str) -> Definition:
        """The task of that name, or `UnknownTask`."""
        found = self._tasks.get(name)
        if found is None:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise UnknownTask(f"No task {name!r} is registered here (registered: {known}).")
        return found

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)


def _same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether two functions are one: a module that is loaded twice (as __main__ and by name) makes it again."""
    return one is other or (
        getattr(one, "__qualname__", one) == getattr(other, "__qualname__", other)
        and getattr(getattr(one, "__code__", None), "co_filename", 1)
        == getattr(getattr(other, "__code__", None), "co_filename", 2)
    )
