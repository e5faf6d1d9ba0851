"""A private PostgreSQL server: on 127.0.0.1, with its own data, gone when its owner is gone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from .folders import RunFolder, open_run_folder
from .guarded import start_guarded
from .ports import free_port
from .postgres_binaries import find_binaries
from .postgres_data import fresh_data
from .processes import cpu_seconds, processes_in, wait_until
from .unavailable import ServerUnavailable

# Without these a crash of the machine would lose data; a crash of the server alone would not.
CARELESS = {"fsync": "off", "full_page_writes": "off"}
START_SECONDS = 120.0
STOP_SECONDS = 30.0
PORTS_TO_TRY = 5


class PostgresServer:
    """One server of the given major version, not started yet. As a context manager it is started and stopped.

    `durable` keeps fsync and full_page_writes on, as in production: for benchmarks and for crashes.
    `settings` are any of postgresql.conf's.
    """

    def __init__(
        self,
        major: int,
        *,
        durable: bool = False,
        shared_buffers: str = "128MB",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.name = f"postgres{major}"
        self.major = major
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": shared_buffers,
            **({} if durable else CARELESS),
            **(settings or {}),
        }
        self.port = 0
        self._pid = 0
        self._folder: RunFolder | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def url(self, database: str = "postgres") -> str:
        """The URL by which a superuser connects to one database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

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
        """kill -9 the postmaster; returns when all of its processes are gone. `start` keeps port and data."""
        if self._guard is None:
            return
        os.kill(self.pid, signal.SIGKILL)
        self._guard.wait()
        if not wait_until(self._is_gone, STOP_SECONDS):
            for orphan in processes_in(self.data):
                os.kill(orphan, signal.SIGKILL)
            wait_until(self._is_gone, STOP_SECONDS)
        self._guard = None

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
        """The postmaster's process id."""
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
        binaries = find_binaries(self.major)
        if self._folder is None:
            self._folder = open_run_folder(self.name)
            fresh_data(binaries, self._folder.path)
        for _ in range(PORTS_TO_TRY):
            self.port = self.port or free_port()
            settings = {**self.settings, "port": str(self.port)}
            options = [f"--{name}={value}" for name, value in settings.items()]
            command = [binaries.program("postgres"), "-D", str(self.data), *options]
            if self._boot(command, binaries.environment(), self._folder):
                return
            if "could not bind" not in self.log():
                break
            self.port = 0  # somebody was faster
        reason = f"it did not start. Its log ends:\n{self.log()[-2000:]}"
        raise ServerUnavailable(self.name, reason, "read the log above.")

    def _boot(self, command: list[str], environment: dict[str, str], folder: RunFolder) -> bool:
        """Start the program and wait; False if it ended, or was not ready in time and was ended for that."""
        # A killed server leaves this file, whose process id may be somebody else's by now.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        self._guard = guard = start_guarded(command, environment, folder)
        wait_until(lambda: self._is_ready() or guard.poll() is not None, START_SECONDS)
        if self._is_ready():
            return True
        guard.kill()  # its server is sent an immediate shutdown by the kernel
        guard.wait()
        wait_until(self._is_gone, STOP_SECONDS)
        self._guard = None
        return False

    def _is_ready(self) -> bool:
        """The postmaster keeps its process id in the first line of this file and its state in the eighth."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        if len(lines) < 8 or lines[7].strip() != "ready":
            return False
        self._pid = int(lines[0])
        return True

    def _is_gone(self) -> bool:
        return not processes_in(self.data)

    def _shut_down(self) -> None:
        """Politely, then at once, then by force."""
        if self._guard is None:
            return
        for request in (signal.SIGINT, signal.SIGQUIT):
            if self._guard.poll() is None:
                os.kill(self.pid, request)
            try:
                self._guard.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            self._guard = None
            return
        self.kill()
