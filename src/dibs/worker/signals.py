"""SIGTERM and SIGINT: the first asks, the second forces."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from dibs.store import fork

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopped_by_signals(ask: Callable[[], None], force: Callable[[], None]) -> Iterator[None]:
    """Route signals while this runs. Does nothing outside the main thread, where Python allows no handlers.

    `ask` and `force` are called in a thread of their own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def obey(number: int) -> None:
        nonlocal asked
        if number in _SIGNALS:
            (force if asked else ask)()
            asked = True

    with signals_heard(obey), _Handlers():
        yield


@contextmanager
def signals_heard(hear: Callable[[int], None]) -> Iterator[None]:
    """Call `hear` with the number of each signal that Python handles, in a thread of its own. In the main thread only.

    Python runs a handler in the main thread, between two of its steps, but the kernel gives a signal to any thread. A
    main thread that sleeps in a lock then sleeps on, and the signal is lost (seen: one SIGTERM in five that were sent
    to a suspended worker). Its number, however, is written to this socket at once, whichever thread was hit. Whoever
    listened before, a block around this one or asyncio, goes on hearing.
    """
    ear = _Ear(hear)
    try:
        yield
    finally:
        ear.close()


class _Ear:
    """A socket that Python writes the numbers of signals to, and the thread that reads it."""

    def __init__(self, hear: Callable[[int], None]) -> None:
        self._hear = hear
        self._heard, self._written = socket.socketpair()
        self._written.setblocking(False)
        self._thread = threading.Thread(target=self._listen, name="dibs-signals", daemon=True)
        self._before = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        self._thread.start()
        fork.watch(self, _Ear._leave_to_parent)

    def _listen(self) -> None:
        while number := self._heard.recv(1):
            with suppress(OSError):  # -1, closed, or full: nobody listened, or no longer does
                os.write(self._before, number)
            self._hear(number[0])

    def _leave_to_parent(self) -> None:
        """A forked child has the same socket: what is sent to the child would be heard by the parent."""
        if self._written.fileno() >= 0:
            signal.set_wakeup_fd(-1)

    def close(self) -> None:
        """Hear what has come so far, and no more."""
        signal.set_wakeup_fd(self._before)
        self._written.shutdown(socket.SHUT_WR)  # closing is not enough: a forked child may have it open
        self._thread.join()
        self._written.close()
        self._heard.close()


class _Handlers:
    """Handlers that do nothing: without any the signals would end the process, or raise KeyboardInterrupt."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, _nothing) for number in _SIGNALS}
        fork.watch(self, _Handlers._give_back)  # nobody listens in a forked child: it ends as if we had not been here

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _give_back(self) -> None:
        for number, handler in self._before.items():
            if handler is not _nothing:  # else those of a block around this one know better
                signal.signal(number, handler)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """The number has been written to the socket."""
