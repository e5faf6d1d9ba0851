"""Tasks by name, and what a decorator may say of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from dibs.errors import InvalidName, InvalidOption, UnknownTask
from dibs.model.backoff import Backoff
from dibs.model.options import JobOptions
from dibs.task.registry import Definition, Registry, define

PLAIN = JobOptions()


def send(to: str) -> str:
    return to


async def fetch(url: str) -> str:
    return url


class Fetcher:
    async def __call__(self, url: str) -> str:
        return url

    async def fetch(self, url: str) -> str:
        return url


def test_a_task_is_named_after_its_function_unless_it_is_told_otherwise() -> None:
    assert define(send, None, PLAIN).name == "send"
    assert define(send, "mail.send", PLAIN).name == "mail.send"


@pytest.mark.parametrize("function", [lambda: None, functools.partial(send, "a")], ids=["lambda", "partial"])
def test_a_function_without_a_usable_name_must_be_given_one(function: Callable[..., Any]) -> None:
    with pytest.raises(InvalidName, match="cannot be a task name"):
        define(function, None, PLAIN)
    assert define(function, "named", PLAIN).name == "named"


@pytest.mark.parametrize("name", ["", 0, False])
def test_an_empty_name_is_refused_and_not_taken_for_none(name: Any) -> None:
    with pytest.raises(InvalidName):
        define(send, name, PLAIN)


@pytest.mark.parametrize(
    ("function", "run_in", "place"),
    [
        (send, "auto", "thread"),
        (send, "thread", "thread"),
        (send, "process", "process"),
        (fetch, "auto", "loop"),
        (fetch, "loop", "loop"),
        (fetch, "process", "process"),
        (functools.partial(fetch, "a"), "auto", "loop"),
        (Fetcher(), "auto", "loop"),
        (Fetcher().fetch, "auto", "loop"),
        (Fetcher, "auto", "thread"),
    ],
)
def test_a_handler_runs_where_its_kind_can_run(function: Callable[..., Any], run_in: Any, place: str) -> None:
    made = define(function, "work", PLAIN, run_in)
    assert made.run_in == place
    assert made.is_async is (function not in (send, Fetcher))


@pytest.mark.parametrize(
    ("function", "run_in", "words"),
    [
        (fetch, "thread", "async def handler cannot run_in='thread'"),
        (send, "loop", "def handler cannot run_in='loop'"),
        (send, "", "run_in='' is unknown"),
        (send, None, "run_in=None is unknown"),
        ("send", "auto", "cannot be a task"),
        (None, "auto", "cannot be a task"),
    ],
)
def test_a_handler_that_cannot_run_there_is_refused(function: Any, run_in: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        define(function, "work", PLAIN, run_in)


def test_limits_of_a_task_are_checked_and_kept() -> None:
    made = define(send, None, PLAIN, "auto", "2m", Backoff.fixed(5), 1)
    assert (made.timeout, made.backoff, made.max_crashes) == (120.0, Backoff.fixed(5), 1)
    bare = define(send, None, PLAIN)
    assert (bare.timeout, bare.backoff, bare.max_crashes) == (None, None, None)


def test_annotations_are_read_at_the_first_use_and_only_once() -> None:
    made = define(lambda *args: None, "work", PLAIN)
    with pytest.raises(InvalidOption, match=r"\*args"):
        _ = made.signature
    good = define(send, None, PLAIN)
    assert good.signature is good.signature


def _loaded_twice(function: FunctionType) -> FunctionType:
    """The same function from the same file, as a second load of its module makes it."""
    copy = FunctionType(function.__code__.replace(), {}, function.__name__)
    copy.__qualname__ = function.__qualname__
    return copy


def test_a_module_that_is_loaded_twice_registers_its_tasks_anew() -> None:
    registry = Registry()
    registry.add(define(send, None, PLAIN))
    again = define(_loaded_twice(send), None, JobOptions(queue="mail"))  # type: ignore[arg-type]
    registry.add(again)
    assert registry.get("send") is again
    assert len(registry) == 1


@pytest.mark.parametrize("other", [fetch, lambda to: to, len, functools.partial(send, "a")])
def test_a_second_function_under_one_name_is_refused(other: Callable[..., Any]) -> None:
    registry = Registry()
    first = define(send, "send", PLAIN)
    registry.add(first)
    with pytest.raises(InvalidOption, match="Two functions are registered as task 'send'"):
        registry.add(define(other, "send", PLAIN))
    assert registry.get("send") is first


def test_one_function_may_be_registered_under_two_names() -> None:
    registry = Registry()
    for name in ("b", "a"):
        registry.add(define(send, name, PLAIN))
    assert [task.name for task in registry] == ["b", "a"]


def test_an_unknown_task_is_named_with_those_that_are_known() -> None:
    registry = Registry()
    with pytest.raises(UnknownTask, match=r"No task 'send' is registered here \(registered: none\)"):
        registry.get("send")
    for name in ("b", "a"):
        registry.add(define(send, name, PLAIN))
    with pytest.raises(UnknownTask, match=r"\(registered: a, b\)"):
        registry.get("send")
    assert registry.find("send") is None
    found = registry.find("a")
    assert isinstance(found, Definition)
