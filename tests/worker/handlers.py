"""Handlers that are run in processes: these import them by name."""

from __future__ import annotations

import os
import signal
import sys
import threading
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from dibs import Cancel, Dibs, Discard, Retry, Snooze, current_job


def double(n: int) -> int:
    """An answer, from another process."""
    return 2 * n


async def double_async(n: int) -> int:
    """The same, by a coroutine."""
    return 2 * n


def whoami() -> dict[str, Any]:
    """Where this runs, and for which job."""
    return {"pid": os.getpid(), "attempt": current_job().attempts, "child": parent_process() is not None}


def fail(text: str) -> None:
    """An error, from another process."""
    raise ValueError(text)


def leave(code: int) -> None:
    """The end of the process, without a word."""
    os._exit(code)


def leave_politely(code: int) -> None:
    """What a library may do that thinks it is a program."""
    sys.exit(code)


def kill_myself() -> None:
    """What the kernel does to a process that eats all memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def decide(what: str) -> Any:
    """A decision, from another process."""
    if what == "snooze":
        raise Snooze("1h")
    if what == "retry":
        return Retry("1h", reason="later")
    if what == "cancel":
        raise Cancel("no")
    return Discard("old")


class Gone(Exception):
    """An error that pickle takes but does not give back: it wants two arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)


class Beyond(Discard):
    """A decision of the application's own, and it cannot be pickled either."""

    def __init__(self) -> None:
        super().__init__("beyond")
        self.lock = threading.Lock()


def decide_oddly(what: str) -> Any:
    """A decision that holds what cannot travel."""
    if what == "beyond":
        raise Beyond
    raise Discard(Gone(410, "gone"))  # type: ignore[arg-type]


def unfit() -> object:
    """A result that is no JSON."""
    return object()


def hang(folder: str) -> None:
    """Say in a file who runs, then wait for ever."""
    path = Path(folder) / "pid"
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)
    threading.Event().wait()


EVERY = (double, double_async, whoami, fail, leave, leave_politely, kill_myself, decide, decide_oddly, unfit, hang)


def register(jobs: Dibs, **options: Any) -> None:
    """All of them as tasks that run in processes."""
    jobs.register({function.__name__: function for function in EVERY}, run_in="process", **options)
