"""Services a worker can do without. Each is a module that may be deleted, and then nobody misses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from dibs.store.access import Store
from dibs.worker.service import Service

MODULES = ("dibs.worker.bell", "dibs.worker.chores")
"""Each has a function `services(host)`."""


class Host(NamedTuple):
    """What such a service gets to know of its worker."""

    store: Store
    worker: str
    ring: Callable[[], None]
    hears: bool


def services(host: Host) -> Iterator[Service]:
    """The services of those modules that are there."""
    for name in MODULES:
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
        else:
            yield from module.services(host)
