"""SIGTERM and SIGINT: the first asks, the second forces."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopped_by_signals(ask: Callable[[], None], force: Callable[[], None]) -> Iterator[None]:
    """Route signals while this runs. Does nothing outside the main thread, where Python allows no handlers.

    `ask` and `force` are called in a thread of their own. A handler runs between two steps of the main thread, which
    may just then hold the very lock that `Event.set` takes: it would wait for itself. Only a `SimpleQueue` is safe.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: SimpleQueue[bool] = SimpleQueue()

    def handle(_number: int, _frame: FrameType | None) -> None:
        heard.put(True)

    def obey() -> None:
        if heard.get():
            ask()
        while heard.get():
            force()

    obeying = threading.Thread(target=obey, name="dibs-signals", daemon=True)
    obeying.start()
    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        heard.put(False)
        heard.put(False)
        obeying.join()
