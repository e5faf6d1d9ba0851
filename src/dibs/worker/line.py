"""A service's own line to the database: one connection, opened when needed, opened again when it broke."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from dibs.errors import DatabaseUnreachable, DibsError
from dibs.store.access import OwnSession, Store
from dibs.store.runner import Operation, run

T = TypeVar("T")
_REPLAYS = 6


class Line:
    """One connection of one thread. No service ever waits for another one's connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: OwnSession | None = None

    def call(self, make: Callable[[], Operation[T]]) -> T:
        """Run an operation, again after a deadlock. A lost connection is the caller's to try again."""
        replay = 0
        while True:
            try:
                return run(self._open(), make())
            except BaseException as error:
                ended = self._check()
                replay += 1
                if replay == _REPLAYS or not self._store.dialect.replayable(error):
                    explained = self._explained(error, ended)
                    if explained is None:
                        raise
                    raise explained from error
            time.sleep(random.uniform(0.001, 0.005 * 2**replay))

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _open(self) -> OwnSession:
        if self._session is None:
            self._session = self._store.database.connect()
        return self._session

    def _explained(self, error: BaseException, ended: bool) -> DibsError | None:
        found = self._store.dialect.explain(error)
        if found is None and ended:
            return DatabaseUnreachable(f"The connection has ended: {error}.")
        return found

    def _check(self) -> bool:
        """Whether the connection is of no more use; the next call opens another."""
        broken = self._session is not None and self._session.broken
        if broken:
            self.close()
        return broken
