"""Child processes that are timed: they make ready, wait for "go", work, and say what they saw in one line."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.core.machine import ROOT

READY_SECONDS = 60.0
END_SECONDS = 30.0


class ChildFailed(RuntimeError):
    """A child ended early, or did not answer in time."""


class Child:
    """One `python -m MODULE ARGUMENTS`, in the repository's root."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        self._said = ""
        self._errors = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ready(self) -> None:
        """Wait until it has imported and connected what it needs."""
        self.hear(READY_SECONDS)

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def ask_to_stop(self) -> None:
        """Send SIGTERM, as an operator would."""
        self._process.send_signal(signal.SIGTERM)

    def hear(self, seconds: float) -> dict[str, Any]:
        """Its next line."""
        assert self._process.stdout is not None
        pipe, deadline = self._process.stdout.fileno(), time.monotonic() + seconds
        while "\n" not in self._said:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise ChildFailed(f"no answer after {seconds:g} s: {self._tail()}")
            chunk = os.read(pipe, 1 << 16)
            if not chunk:
                raise ChildFailed(f"it ended with {self._process.wait(END_SECONDS)}: {self._tail()}")
            self._said += chunk.decode()
        line, _, self._said = self._said.partition("\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Make sure that it and its own children are gone."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:] or "it said nothing"


@contextmanager
def children(count: int, module: str, arguments: Sequence[str], log: Path) -> Iterator[list[Child]]:
    """Some children alike, ready to go; gone when the block is left."""
    started: list[Child] = []
    try:
        for _ in range(count):
            started.append(Child(module, arguments, log))
        for child in started:
            child.ready()
        yield started
    finally:
        for child in started:
            child.end()


def as_child(work: Callable[[], dict[str, Any]]) -> None:
    """The other side: tell that we are ready, wait for "go", work, and tell the answer with our processor time.

    The time includes our children's (`run_in="process"`, `--processes`), as far as they have ended.
    """
    tell({"ready": True})
    if not sys.stdin.readline():
        return
    before = _cpu()
    answer = work()
    tell({**answer, "cpu": _cpu() - before})


def tell(answer: dict[str, Any]) -> None:
    """One line for the parent."""
    print(json.dumps(answer), flush=True)


def _cpu() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
