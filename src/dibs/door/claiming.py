"""The claimers that `dequeue` keeps between two calls: each remembers how far it came in its queues."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from dibs.store.claimer import Claimer

KEPT = 32
"""Claimers of different queues, tasks, leases or workers. One more, and the one longest unused is forgotten."""


class Claimers:
    """The claimers used last. Its lock is never held while a database answers: an event loop may ask."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Claimer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Claimer]) -> Claimer:
        """The claimer of that key, made if it is not known (any more). A new one looks at its queues afresh."""
        with self._lock:
            found = self._known.get(key) or make()
            self._known[key] = found
            self._known.move_to_end(key)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            return found

    def __len__(self) -> int:
        return len(self._known)
