"""The processes of a run, and what is done to them. Everything done is in the journal before it is done."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chaos.journal import Journal

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS = 60.0
END_SECONDS = 30.0
MOST = 16


class RunFailed(RuntimeError):
    """The run itself could not be carried out; that says nothing about dibs."""


class Process:
    """One process of a run, in a group of its own, so that its children can be ended with it."""

    def __init__(self, role: str, url: str, folder: Path, options: dict[str, Any]) -> None:
        self.role = role
        self.url = url
        self.folder = folder
        self.options = options
        with (folder / f"{role}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "chaos.process", role, url, str(folder), json.dumps(options)],
                cwd=ROOT,
                stdin=subprocess.PIPE,  # a leash: it ends with us, however we end
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def ready(self) -> None:
        """Wait until it has said that it is up."""
        wait_for(lambda: self._said("ready") or not self.alive, READY_SECONDS, f"{self.role} {self.pid} to be up")
        if not self._said("ready"):
            raise RunFailed(f"{self.role} {self.pid} ended at once; see {self.folder / self.role}.log")

    @property
    def busy(self) -> bool:
        """Whether a handler runs in it at this moment."""
        return self.alive and self._said("start") > self._said("end") + self._said("lost")

    def _said(self, kind: str) -> int:
        """How often something stands in its journal."""
        journal = self.folder / f"{self.role}-{self.pid}.jsonl"
        return journal.read_bytes().count(f'"kind": "{kind}"'.encode()) if journal.exists() else 0

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def again(self) -> Process:
        """Another one like it."""
        return Process(self.role, self.url, self.folder, self.options)

    def end(self, seconds: float = END_SECONDS) -> None:
        """Ask it to end, and make sure."""
        if self.alive:
            self.signal(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
        self._reap()

    def destroy(self) -> None:
        """End it and its children, in whatever state they are."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


class Nemesis:
    """Hurts processes, as its dice say; its seed reproduces the plan."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.journal = Journal(folder, "nemesis")
        self.dice = random.Random(seed)

    def choose(self, processes: Sequence[Process], number: int = 1) -> list[Process]:
        """Some of those that run a handler now; waits until there are enough."""

        def busy() -> list[Process]:
            return [process for process in processes if process.busy]

        wait_for(lambda: len(busy()) >= number, READY_SECONDS, f"{number} busy processes of {len(processes)}")
        found = busy()
        return self.dice.sample(found, min(number, len(found)))

    def kill(self, process: Process) -> None:
        """kill -9; returns when it is gone."""
        self.journal.write("kill", target=process.pid)
        process.signal(signal.SIGKILL)
        process.destroy()
        self.journal.write("killed", target=process.pid)

    def pause(self, processes: Sequence[Process], seconds: float) -> None:
        """SIGSTOP all of them, and after a while SIGCONT."""
        for process in processes:
            self.journal.write("stop", target=process.pid)
            process.signal(signal.SIGSTOP)
        time.sleep(seconds)
        for process in processes:
            self.journal.write("cont", target=process.pid)
            process.signal(signal.SIGCONT)

    def wait(self, low: float, high: float) -> None:
        """Some time in between."""
        time.sleep(self.dice.uniform(low, high))


class Fleet:
    """All processes of a run; none outlives it."""

    def __init__(self, urls: Sequence[str], folder: Path) -> None:
        self.urls = urls
        self.folder = folder
        self.processes: list[Process] = []

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.destroy()

    def start(self, role: str, number: int = 1, /, **options: Any) -> list[Process]:
        """Start some processes, and wait until they are up."""
        if number > MOST:
            raise RunFailed(f"{number} processes at once are more than {MOST}")
        there = len(self.of(role))
        urls = [self.urls[(there + one) % len(self.urls)] for one in range(number)]
        started = [Process(role, url, self.folder, options) for url in urls]
        self.processes += started
        for process in started:
            process.ready()
        return started

    def replace(self, process: Process) -> Process:
        """Start another one in the place of one that has ended, without waiting for it."""
        process.destroy()
        self.processes[self.processes.index(process)] = found = process.again()
        return found

    def of(self, *roles: str) -> list[Process]:
        """The processes of some roles."""
        return [process for process in self.processes if process.role in roles]

    def revive(self) -> int:
        """Start workers that ended by themselves again, as a supervisor would; answers how many."""
        ended = [process for process in self.of("worker") if not process.alive]
        for process in ended:
            self.replace(process)
        return len(ended)

    def stop(self, *roles: str) -> None:
        """Ask all of some roles to end, and wait until they have."""
        stopped = self.of(*roles)
        for process in stopped:
            if process.alive:
                process.signal(signal.SIGTERM)
        for process in stopped:
            process.end()


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Look now and then; RunFailed when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RunFailed(f"waited {seconds:g} seconds in vain for {what}")
        time.sleep(0.02)
