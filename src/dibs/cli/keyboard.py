"""Single keys from a terminal, without waiting for Enter."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PAUSE = 0.05


@contextmanager
def keys() -> Iterator[None]:
    """While this runs, `pressed` sees each key at once and the terminal does not show it."""
    if sys.platform == "win32":
        yield
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def pressed(seconds: float) -> str:
    """The next key, or nothing if none is pressed in time."""
    if sys.platform == "win32":
        return _pressed_on_windows(seconds)
    import os
    import select

    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") if ready else ""


def _pressed_on_windows(seconds: float) -> str:
    import importlib

    console = importlib.import_module("msvcrt")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if console.kbhit():
            return str(console.getwch())
        time.sleep(_PAUSE)
    return ""
