"""Hears other programs' commits. Only ever makes polling earlier: delete it, and dibs is slower but whole."""

from __future__ import annotations

from collections.abc import Callable

from dibs.store.access import Store
from dibs.store.dialect import Bell
from dibs.worker.extras import Host
from dibs.worker.service import Service

PATIENCE = 0.25
"""Seconds of one wait: as long as the end of the worker may be delayed."""


class Listener(Service):
    """Waits at the database's bell and wakes the fetcher."""

    name = "listener"

    def __init__(self, store: Store, ring: Callable[[], None]) -> None:
        super().__init__()
        self._store = store
        self._ring = ring
        self._bell: Bell | None = None

    def tick(self) -> float:
        """Wait for a ring."""
        if self._bell is None:
            self._bell = self._store.database.bell()
            if self._bell is None:
                return 3600.0
            # What was rung while nobody listened is found by looking.
            self._ring()
        try:
            if self._bell.wait(PATIENCE):
                self._ring()
        except BaseException as error:
            self._hang_up()
            explained = self._store.dialect.explain(error)
            if explained is None:
                raise
            raise explained from error
        return 0.0

    def closed(self) -> None:
        """Hang up."""
        self._hang_up()

    def _hang_up(self) -> None:
        bell, self._bell = self._bell, None
        if bell is not None:
            bell.close()


def services(host: Host) -> list[Service]:
    """A listener, where there is something to hear."""
    return [Listener(host.store, host.ring)] if host.hears else []
