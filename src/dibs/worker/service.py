"""A service: one thread that does one thing again and again, for ever, until it is told to stop."""

from __future__ import annotations

import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

_log = logging.getLogger("dibs.worker")


class Service(ABC):
    """`tick` does one round and answers in how many seconds to be called again. This is the only loop.

    A round that fails is tried again after a growing, jittered pause, for ever: a database that is away comes back.
    """

    name = "service"
    longest_pause = 5.0
    """Seconds between two tries at most, so that all works again soon after a database has come back."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0
        self.succeeded_at = time.monotonic()

    @abstractmethod
    def tick(self) -> float:
        """Do one round; answer the pause until the next."""

    def closed(self) -> None:  # noqa: B027 - most services have nothing to clean up
        """Called once in the service's thread after its last round."""

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._loop, name=f"dibs-{self.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Let the next round begin now."""
        self._wake.set()

    def stop(self) -> None:
        """Ask the thread to end after its round."""
        self._stopping.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait for the thread to end. Answers whether it has."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    @property
    def silent_for(self) -> float:
        """Seconds since the last round that succeeded."""
        return time.monotonic() - self.succeeded_at

    def _loop(self) -> None:
        while not self._stopping.is_set():
            pause = self._round(self.tick)
            if pause > 0 and not self._stopping.is_set():
                (self._stopping if self._failures else self._wake).wait(pause)  # trouble is not hurried by anybody
            self._wake.clear()
        self._round(self.closed)

    def _round(self, work: Callable[[], float | None]) -> float:
        try:
            pause = work()
        except Exception as error:  # noqa: BLE001 - a service outlives whatever a round may meet, and says so
            return self._failed(error)
        if self._failures:
            _log.info("%s works again after %d failures", self.name, self._failures)
            self._failures = 0
        self.succeeded_at = time.monotonic()
        return pause or 0.0

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        pause = min(self.longest_pause, 0.1 * float(2 ** min(self._failures, 8))) * random.uniform(0.5, 1.0)
        if self._failures.bit_count() == 1:  # said less and less often
            _log.warning(
                "%s failed %d times, last success %.1f s ago, next try in %.1f s: %s: %s",
                self.name,
                self._failures,
                self.silent_for,
                pause,
                type(error).__name__,
                error,
            )
        return pause
