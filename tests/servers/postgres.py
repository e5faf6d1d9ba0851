"""A private PostgreSQL server."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from .postgres_binaries import find_binaries
from .postgres_data import fresh_data
from .private import PrivateServer

# Without these a crash of the machine would lose data; a crash of the server alone would not.
CARELESS = {"fsync": "off", "full_page_writes": "off"}


class PostgresServer(PrivateServer):
    """One server of the given major version, not started yet. As a context manager it is started and stopped.

    `durable` keeps fsync and full_page_writes on, as in production: for benchmarks and for crashes.
    `settings` are any of postgresql.conf's.
    """

    PORT_IS_TAKEN = "could not bind"
    REQUESTS_TO_STOP = (signal.SIGINT, signal.SIGQUIT)

    def __init__(
        self,
        major: int,
        *,
        durable: bool = False,
        shared_buffers: str = "128MB",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"postgres{major}")
        self.major = major
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": shared_buffers,
            **({} if durable else CARELESS),
            **(settings or {}),
        }

    def url(self, database: str = "postgres") -> str:
        """The URL by which a superuser connects to one database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def _make_data(self, folder: Path) -> None:
        fresh_data(find_binaries(self.major), folder)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        binaries = find_binaries(self.major)
        settings = {**self.settings, "port": str(self.port)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [binaries.program("postgres"), "-D", str(self.data), *options], binaries.environment()

    def _forget_last_run(self) -> None:
        """A killed server leaves this file, whose process id may be somebody else's by now."""
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _ready_pid(self) -> int | None:
        """The postmaster keeps its process id in the first line of this file and its state in the eighth."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        return int(lines[0]) if len(lines) >= 8 and lines[7].strip() == "ready" else None
