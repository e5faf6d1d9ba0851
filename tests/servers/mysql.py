"""Private MySQL and MariaDB servers."""

from __future__ import annotations

import signal
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from .account import server_account
from .mysql_data import PASSWORD, fresh_mariadb_data, fresh_mysql_data
from .mysql_programs import ENVIRONMENT, MARIADB1011, MYSQL97, Release, find_programs
from .private import PrivateServer

# Without these a crash of the machine would lose data; a crash of the server alone would not: what is
# committed was handed to the kernel.
CARELESS = (
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=OFF",
)
SMALL_REDO_LOG = {"MySQL": "--innodb-redo-log-capacity=32M", "MariaDB": "--innodb-log-file-size=32M"}


class _MysqlLike(PrivateServer):
    """What both have in common: they are of one descent, and answer to the same options."""

    PORT_IS_TAKEN = "Bind on TCP/IP port"
    REQUESTS_TO_STOP = (signal.SIGTERM,)
    RELEASE: Release
    SCHEME: str

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(self.RELEASE.name)
        self.durable = durable
        self.settings = {"max_connections": "200", **(settings or {})}
        self._said_before = 0

    def url(self, database: str = "") -> str:
        """The URL by which root connects, over TCP and with a password."""
        return f"{self.SCHEME}://root:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        """End it and delete the data, which need not be brought to rest for that (MySQL takes 1.6 s)."""
        if self._pid:
            self.kill()
        super().stop()

    @abstractmethod
    def _fresh_data(self, folder: Path) -> None:
        """Make `folder`/data."""

    def _make_data(self, folder: Path) -> None:
        self._fresh_data(folder)
        (folder / "tmp").mkdir(mode=0o700)
        server_account().give(folder / "tmp")

    @abstractmethod
    def _careless(self) -> tuple[str, ...]:
        """The options of a server that is not durable."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        options = (
            f"--datadir={self.data}",
            f"--tmpdir={self.data.parent / 'tmp'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--socket=socket",  # in the data folder, where the server works: no path is too long for it
            "--pid-file=pid",
            *(() if self.durable else self._careless()),
            *(f"--{name}={value}" for name, value in self.settings.items()),
        )
        return [*find_programs(self.RELEASE).command, *options], ENVIRONMENT

    def _forget_last_run(self) -> None:
        """The log goes on where it ended; a killed server's process id may be somebody else's by now."""
        (self.data / "pid").unlink(missing_ok=True)
        log = self.data.parent / "log"
        self._said_before = log.stat().st_size if log.exists() else 0

    def _ready_pid(self) -> int | None:
        """It says so in its log. Asking its port would count as a failed attempt to log in, and might ask
        a stranger who was faster."""
        with (self.data.parent / "log").open("rb") as log:
            log.seek(self._said_before)
            if b": ready for connections." not in log.read():
                return None
        return int((self.data / "pid").read_text())


class MysqlServer(_MysqlLike):
    """MySQL 9.7, not started yet. As a context manager it is started and stopped.

    `durable` has a server's defaults, with a binary log and every commit on disk: for benchmarks and for
    crashes. `settings` are any of its options. Accounts are caching_sha2_password, and TLS is offered.
    """

    RELEASE = MYSQL97
    SCHEME = "mysql"

    def _careless(self) -> tuple[str, ...]:
        return (*CARELESS, "--skip-log-bin", SMALL_REDO_LOG["MySQL"])

    def _fresh_data(self, folder: Path) -> None:
        fresh_mysql_data(find_programs(self.RELEASE), (*self._careless(), "--secure-file-priv=NULL"), folder)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        # No second protocol, and no folder for files to export (it insists on one that is there).
        return [*command, "--mysqlx=OFF", "--secure-file-priv=NULL"], environment


class MariadbServer(_MysqlLike):
    """MariaDB 10.11, not started yet. As a context manager it is started and stopped.

    `durable` has a server's defaults, with every commit on disk: for benchmarks and for crashes. `settings`
    are any of its options. Accounts are mysql_native_password, and there is no TLS.
    """

    RELEASE = MARIADB1011
    SCHEME = "mariadb"

    def _careless(self) -> tuple[str, ...]:
        return (*CARELESS, SMALL_REDO_LOG["MariaDB"])

    def _fresh_data(self, folder: Path) -> None:
        fresh_mariadb_data(find_programs(self.RELEASE), self._careless(), folder)
