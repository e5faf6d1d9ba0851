"""Data folders of MySQL and MariaDB, with an administrator who comes by TCP and has a password."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .account import server_account
from .commands import ask
from .mysql_programs import ENVIRONMENT, Programs
from .templates import copied
from .unavailable import ServerUnavailable

PASSWORD = "dibs"
ADMINISTRATOR = (
    f"create user root@'127.0.0.1' identified by '{PASSWORD}';",
    "grant all on *.* to root@'127.0.0.1' with grant option;",
)
SYSTEM_TABLES = (
    "mysql_system_tables",
    "mysql_performance_tables",
    "mysql_system_tables_data",
    "maria_add_gis_sp_bootstrap",
    "mysql_sys_schema",
)
"""The files that MariaDB's own script gives to its bootstrapping server, without the texts of its help."""


def fresh_mysql_data(programs: Programs, options: Sequence[str], folder: Path) -> Path:
    """New data in `folder`/data. MySQL makes keys and certificates in it: it speaks TLS."""
    recipe = (*programs.command, programs.version, *options, *ADMINISTRATOR)
    return copied(f"mysql-data-{programs.version}", recipe, partial(_initialise_mysql, programs, options), folder)


def fresh_mariadb_data(programs: Programs, options: Sequence[str], folder: Path) -> Path:
    """New data in `folder`/data, without TLS."""
    recipe = (*programs.command, programs.version, *options, *SYSTEM_TABLES, *ADMINISTRATOR)
    return copied(f"mariadb-data-{programs.version}", recipe, partial(_initialise_mariadb, programs, options), folder)


def _initialise_mysql(programs: Programs, options: Sequence[str], data: Path) -> None:
    script = data.parent / "administrator.sql"
    script.write_text("\n".join(ADMINISTRATOR))
    script.chmod(0o644)
    _run(programs, ["--initialize-insecure", f"--init-file={script}", f"--datadir={data}", *options])


def _initialise_mariadb(programs: Programs, options: Sequence[str], data: Path) -> None:
    """As mariadb-install-db does, which is a script and would look for programs in the system's folders."""
    tables = [(programs.share / f"{name}.sql").read_text() for name in SYSTEM_TABLES]
    # It reads one statement a line, and knows no users until it is told to look.
    before = ("create database mysql;", "use mysql;", "set @auth_root_socket = null;")
    after = ("flush privileges;", "drop user root@'127.0.0.1';", *ADMINISTRATOR)
    roomy = ("--max-allowed-packet=8M", "--net-buffer-length=16K")
    _run(programs, ["--bootstrap", f"--datadir={data}", *roomy, *options], "\n".join((*before, *tables, *after, "")))


def _run(programs: Programs, options: Sequence[str], given: str = "") -> None:
    command = [*programs.command, *options]
    answer = ask(command, account=server_account(), environment=ENVIRONMENT, given=given)
    if answer.returncode != 0:
        reason = f"its data could not be made: {answer.stdout[-2000:]}"
        raise ServerUnavailable(f"{command[0]} {programs.version}", reason, "read its words above.")
