"""A private PgBouncer in front of a PostgreSQL server."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

from .account import server_account
from .pgbouncer_program import ENVIRONMENT, find_pgbouncer
from .postgres import PostgresServer
from .private import PrivateServer

SETTINGS = {
    "listen_addr": "127.0.0.1",
    "unix_socket_dir": "",
    "auth_type": "trust",
    "auth_file": "users",
    "admin_users": "postgres",
    "pool_mode": "transaction",
    # Each transaction gets another connection than the last one, and none knows what was prepared on another:
    # whoever counts on the state of a session fails at once, and not once in a while.
    "server_round_robin": "1",
    "max_prepared_statements": "0",
    "max_client_conn": "500",
    "pidfile": "pid",
}


class PgbouncerServer(PrivateServer):
    """PgBouncer 1.24 in transaction mode, not started yet. As a context manager it is started and stopped.

    It stands in front of the server with the URL `upstream`, all of its databases; without one it brings a PostgreSQL
    18 of its own. Each database has `pool_size` connections for all clients.
    """

    PORT_IS_TAKEN = "cannot listen on"
    REQUESTS_TO_STOP = (signal.SIGQUIT,)

    def __init__(self, upstream: str | None = None, *, durable: bool = False, pool_size: int = 2) -> None:
        super().__init__("pgbouncer")
        self._upstream = upstream
        self._own = PostgresServer(18, durable=durable) if upstream is None else None
        self._pool_size = pool_size

    def url(self, database: str = "postgres") -> str:
        """The URL by which a superuser connects to one database; PgBouncer's own is `pgbouncer`."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        """Shut down, with the server that it has brought."""
        super().stop()
        if self._own is not None:
            self._own.stop()

    def _make_data(self, folder: Path) -> None:
        find_pgbouncer()
        if self._own is not None:
            self._own.start()
        data = folder / "data"
        data.mkdir(mode=0o700)
        (data / "users").write_text('"postgres" ""\n')
        for path in (data, data / "users"):
            server_account().give(path)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        server = urlsplit(self._own.url() if self._own is not None else str(self._upstream))
        settings = {**SETTINGS, "listen_port": self.port, "default_pool_size": self._pool_size}
        lines = [f"{name} = {value}" for name, value in settings.items()]
        place = f"* = host={server.hostname} port={server.port}"
        file = self.data / "pgbouncer.ini"
        file.write_text("\n".join(["[databases]", place, "[pgbouncer]", *lines, ""]))
        server_account().give(file)
        # In its data folder: there its files are, and there whoever looks for what it has left finds it.
        return ["/usr/bin/env", f"--chdir={self.data}", *find_pgbouncer(), "pgbouncer.ini"], ENVIRONMENT

    def _forget_last_run(self) -> None:
        """A killed one leaves this file, and the next would not start."""
        (self.data / "pid").unlink(missing_ok=True)

    def _ready_pid(self) -> int | None:
        """It writes this file when it listens."""
        try:
            text = (self.data / "pid").read_text()
        except FileNotFoundError:
            return None
        return int(text) if text.endswith("\n") else None
