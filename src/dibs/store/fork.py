"""Forks: a child process has locks, threads and connections of its own. All that dibs does about forks begins here.

A fork copies the memory, but of the threads only the one that forks: a lock that another thread held at that moment
is never released in the child, and a thread pool there has no threads. What has such things is watched: it may come
to rest before a fork, goes on after it in the parent, and is renewed in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from dibs.model import identity

T = TypeVar("T")


class _Watched(NamedTuple):
    """Somebody to be told of forks, and how. Only a weak reference: being watched keeps nobody alive."""

    owner: weakref.ref[Any]
    renew: Callable[[Any], None]
    rest: Callable[[Any], None]
    go_on: Callable[[Any], None]


def _nothing(_owner: object) -> None:
    """For those who need not rest."""


_watched: dict[int, _Watched] = {}
_one_at_a_time = threading.RLock()


def watch(
    owner: T, renew: Callable[[T], None], rest: Callable[[T], None] = _nothing, go_on: Callable[[T], None] = _nothing
) -> None:
    """Tell `owner` of forks: to `rest` before one, to `go_on` in the parent, to `renew` what it has in the child."""
    key = id(owner)
    _watched[key] = _Watched(weakref.ref(owner, lambda _: _watched.pop(key, None)), renew, rest, go_on)


def _living() -> Iterator[tuple[Any, _Watched]]:
    for watched in list(_watched.values()):
        owner = watched.owner()
        if owner is not None:
            yield owner, watched


def _before() -> None:
    _one_at_a_time.acquire()
    for owner, watched in _living():
        watched.rest(owner)


def _in_parent() -> None:
    for owner, watched in _living():
        watched.go_on(owner)
    _one_at_a_time.release()


def _in_child() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()
    identity.renew()
    for owner, watched in _living():
        watched.renew(owner)


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
