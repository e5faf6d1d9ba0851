"""A private server, whatever its kind: on 127.0.0.1, with its own data, gone when its owner is gone."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from .folders import RunFolder, open_run_folder
from .guarded import start_guarded
from .ports import free_port
from .processes import cpu_seconds, processes_in, wait_until
from .unavailable import ServerUnavailable

START_SECONDS = 120.0
STOP_SECONDS = 30.0
PORTS_TO_TRY = 5


class PrivateServer(ABC):
    """One server, not started yet. As a context manager it is started and stopped."""

    PORT_IS_TAKEN: ClassVar[str]
    """What its log says then."""
    REQUESTS_TO_STOP: ClassVar[tuple[signal.Signals, ...]]
    """From the politest on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = 0
        self._pid = 0
        self._folder: RunFolder | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def url(self, database: str = "") -> str:
        """The URL by which an administrator connects."""

    @abstractmethod
    def _make_data(self, folder: Path) -> None:
        """Make `folder`/data. ServerUnavailable if the server's programs can't be had."""

    @abstractmethod
    def _command(self) -> tuple[list[str], dict[str, str]]:
        """What starts the server on `port` with `data`, and its environment."""

    @abstractmethod
    def _forget_last_run(self) -> None:
        """Remove what a killed server left and `_ready_pid` would be misled by."""

    @abstractmethod
    def _ready_pid(self) -> int | None:
        """The process id of a server that accepts connections; None until then."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start, with new data unless there are some; returns when connections are accepted."""
        if self._guard is not None:
            raise RuntimeError(f"{self.name} runs already")
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Shut down and delete the data. Harmless when there is nothing to stop."""
        self._shut_down()
        if self._folder is not None:
            self._folder.remove()
        self._folder, self.port = None, 0

    def restart(self) -> None:
        """Shut down in order and start again, on the same port with the same data."""
        self._shut_down()
        self.start()

    def kill(self) -> None:
        """kill -9; returns when all of its processes are gone. `start` keeps port and data."""
        if self._guard is None:
            return
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(self.pid, signal.SIGKILL)
        self._guard.wait()
        self._end_the_rest()

    def crash_restart(self) -> None:
        """`kill`, then start again on the same port: returns when recovery is over."""
        self.kill()
        self.start()

    def cpu_seconds(self) -> float:
        """Processor time of all processes of the server since it was last started, to about 0.1 s."""
        return cpu_seconds(self.pid)

    def log(self) -> str:
        """All that the server has written to its log."""
        return (self.data.parent / "log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        """The process id of the server, of its postmaster if it has many."""
        if self._guard is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._pid

    @property
    def data(self) -> Path:
        """The data folder."""
        if self._folder is None:
            raise RuntimeError(f"{self.name} has no data: it was never started, or stopped")
        return self._folder.path / "data"

    def _start(self) -> None:
        if self._folder is None:
            self._folder = open_run_folder(self.name)
            self._make_data(self._folder.path)
        for _ in range(PORTS_TO_TRY):
            self.port = self.port or free_port()
            if self._boot(self._folder):
                return
            if self.PORT_IS_TAKEN not in self.log():
                break
            self.port = 0  # somebody was faster
        reason = f"it did not start. Its log ends:\n{self.log()[-2000:]}"
        raise ServerUnavailable(self.name, reason, "read the log above.")

    def _boot(self, folder: RunFolder) -> bool:
        """Start the program and wait; False if it ended, or was not ready in time and was ended for that."""
        self._forget_last_run()
        command, environment = self._command()
        self._guard = guard = start_guarded(command, environment, folder)
        wait_until(lambda: self._is_ready() or guard.poll() is not None, START_SECONDS)
        if self._is_ready():
            return True
        self._give_up(guard)
        return False

    def _is_ready(self) -> bool:
        pid = self._ready_pid()
        self._pid = pid or 0
        return pid is not None

    def _is_gone(self) -> bool:
        return not processes_in(self.data)

    def _give_up(self, guard: subprocess.Popen[bytes]) -> None:
        """End a server that never was ready, whose process id is therefore unknown."""
        guard.kill()  # its server is sent a request to shut down by the kernel
        guard.wait()
        self._end_the_rest()

    def _end_the_rest(self) -> None:
        if not wait_until(self._is_gone, STOP_SECONDS):
            for orphan in processes_in(self.data):
                with suppress(ProcessLookupError):  # it may have ended by itself just now
                    os.kill(orphan, signal.SIGKILL)
            wait_until(self._is_gone, STOP_SECONDS)
        self._guard = None

    def _shut_down(self) -> None:
        """As politely as it answers to, and by force in the end."""
        if self._guard is None:
            return
        if not self._pid:
            self._give_up(self._guard)
            return
        for request in self.REQUESTS_TO_STOP:
            if self._guard.poll() is None:
                os.kill(self.pid, request)
            try:
                self._guard.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            self._guard = None
            return
        self.kill()
