"""The servers that tests run on keep their own promises: docs in `tests/servers`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn
from urllib.parse import urlsplit

import aiomysql
import asyncmy
import psycopg
import pymysql
import pytest

from tests.run import shared_servers
from tests.servers import MariadbServer, MysqlServer, PostgresServer, ServerUnavailable, must_be_there, running
from tests.servers.archive import ArchiveUnavailable, unpacked_package
from tests.servers.mysql_programs import MYSQL97, find_programs
from tests.servers.processes import processes_in, wait_until

ROOT = Path(__file__).resolve().parents[2]
OF_EACH_KIND = ("postgres18", "mysql97", "mariadb1011", "pgbouncer")


def _skip_a_run_without_servers() -> None:
    if os.environ.get("DIBS_TEST_SERVERS") == "{}":
        pytest.skip("this run is without servers (--fast)")


def _without(name: str, reason: object) -> NoReturn:
    if must_be_there(name):
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A private durable server, unless this run is without PostgreSQL (--fast)."""
    given = os.environ.get("DIBS_TEST_SERVERS")
    if given is not None and "postgres18" not in json.loads(given):
        pytest.skip("this run has no postgres18")
    with PostgresServer(18, durable=True) as server:
        yield server


def test_what_was_committed_survives_a_kill_of_the_server(server: PostgresServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("create table kept as select 7 as answer")
    killed = server.pid
    server.crash_restart()
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("select answer from kept").fetchall() == [(7,)]
    assert server.pid != killed


def test_processor_time_of_a_closed_connection_is_still_counted(server: PostgresServer) -> None:
    before = server.cpu_seconds()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("select count(*) from generate_series(1, 1000000)")
        used = server.cpu_seconds() - before
        processes = len(processes_in(server.data))
    assert wait_until(lambda: len(processes_in(server.data)) < processes, seconds=10)
    assert server.cpu_seconds() - before >= used > 0


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_nothing_is_left_of_a_server_whose_owner_was_killed(name: str) -> None:
    _skip_a_run_without_servers()
    program = (
        "from tests.servers import FACTORIES, ServerUnavailable\n"
        f"server = FACTORIES[{name!r}]()\n"
        "try:\n    server.start()\n"
        "except ServerUnavailable as unavailable:\n    raise SystemExit(print(unavailable))\n"
        "print(server.data, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        said = owner.stdout.readline().strip()
        if not said.startswith("/"):
            _without(name, said)
        data = Path(said)
        assert processes_in(data)
        owner.kill()
    assert wait_until(lambda: not processes_in(data) and not data.parent.exists(), seconds=20)


@pytest.fixture(scope="module", params=[MysqlServer, MariadbServer], ids=["mysql97", "mariadb1011"])
def mysql_like(request: pytest.FixtureRequest) -> Iterator[MysqlServer | MariadbServer]:
    """A private durable server, shared by the tests of this file."""
    _skip_a_run_without_servers()
    server = request.param(durable=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(server)
        except ServerUnavailable as unavailable:
            _without(server.name, unavailable)
        yield server


def _account(server: MysqlServer | MariadbServer) -> dict[str, Any]:
    url = urlsplit(server.url())
    return {"host": url.hostname, "port": url.port, "user": url.username, "password": url.password}


def _asked(server: MysqlServer | MariadbServer, *statements: str) -> tuple[Any, ...]:
    """The first row of what the last statement answers, by PyMySQL without any option."""
    with pymysql.connect(**_account(server), autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchone() or ()


def test_what_was_committed_survives_a_kill_of_mysql_and_mariadb(mysql_like: MysqlServer | MariadbServer) -> None:
    _asked(mysql_like, "create database kept", "create table kept.it (answer int)", "insert into kept.it values (7)")
    killed = mysql_like.pid
    mysql_like.crash_restart()
    assert _asked(mysql_like, "select answer from kept.it") == (7,)
    assert mysql_like.pid != killed
    assert mysql_like.cpu_seconds() > 0


def test_mysql_and_mariadb_are_loopback_servers_with_the_settings_of_production(
    mysql_like: MysqlServer | MariadbServer,
) -> None:
    asked = "select @@bind_address, @@port, @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite in ('ON', '1')"
    assert _asked(mysql_like, asked) == ("127.0.0.1", mysql_like.port, 1, 1)
    assert mysql_like.port < 32768
    binary_log, schema = _asked(mysql_like, "select @@log_bin, @@performance_schema")
    assert (binary_log, schema) == ((1, 1) if mysql_like.name == "mysql97" else (0, 0))


def test_locks_of_rows_can_be_looked_at_while_they_are_held(mysql_like: MysqlServer | MariadbServer) -> None:
    table = {"mysql97": "performance_schema.data_locks", "mariadb1011": "information_schema.innodb_locks"}
    _asked(mysql_like, "create database locked", "create table locked.it (id int primary key)")
    with pymysql.connect(**_account(mysql_like)) as connection, connection.cursor() as cursor:
        cursor.execute("insert into locked.it values (1)")
        cursor.execute("select id from locked.it for update")
        (seen,) = _asked(mysql_like, f"select count(*) from {table[mysql_like.name]}")
    assert (seen > 0) is (mysql_like.name == "mysql97")  # MariaDB shows those only that somebody waits for


@pytest.mark.parametrize("driver", [aiomysql, asyncmy], ids=lambda driver: driver.__name__)
def test_an_asynchronous_driver_logs_in_with_a_password_that_the_server_has_not_seen_yet(
    mysql_like: MysqlServer | MariadbServer, driver: ModuleType
) -> None:
    _asked(mysql_like, "flush privileges")  # forgets the passwords of those who were here
    assert asyncio.run(_cipher(driver, _account(mysql_like))) == ""
    if mysql_like.name == "mysql97":
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        assert asyncio.run(_cipher(driver, {**_account(mysql_like), "ssl": trusting})).startswith("TLS_")


async def _cipher(driver: ModuleType, account: dict[str, Any]) -> str:
    connection = await driver.connect(**account)
    async with connection.cursor() as cursor:
        await cursor.execute("show status like 'Ssl_cipher'")
        found = await cursor.fetchone()
    transport = connection._writer.transport if driver is aiomysql else connection._transport
    await connection.ensure_closed()
    transport.abort()  # with TLS it would wait for the server's farewell, which may come after the loop has ended
    return str(found[1])


def test_pymysql_speaks_tls_with_mysql_and_needs_no_option_for_it(mysql_like: MysqlServer | MariadbServer) -> None:
    _, cipher = _asked(mysql_like, "show status like 'Ssl_cipher'")
    assert bool(cipher) is (mysql_like.name == "mysql97")


@pytest.mark.parametrize(
    ("version", "reason"),
    [("9.7.4-2", "404  Not Found"), ("9.8.0-1", "has mysql-server-core 9.8.0-1, and not 9.7")],
)
def test_a_package_that_left_the_archive_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, reason: str
) -> None:
    _program(
        tmp_path / "apt-get",
        'case "$*" in\n'
        "*print-uris*) echo \"'test:/debian/dists/stable/InRelease' stable 0\" ;;\n"
        f"*install*) echo 'Inst mysql-server-core ({version} Debian:unstable [amd64])' ;;\n"
        "*download*) echo '404  Not Found'; exit 100 ;;\n"
        "esac",
    )
    for other in ("apt-config", "dpkg-deb"):
        _program(tmp_path / other, "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DIBS_TEST_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ArchiveUnavailable, match=reason):
        unpacked_package(MYSQL97.debian)


def test_mariadb_never_stands_in_for_mysql(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # for the servers' user
        _program(Path(folder) / "mysqld", "echo 'mysqld  Ver 9.7.1-MariaDB for debian-linux-gnu'")
        monkeypatch.setenv("DIBS_TEST_MYSQL97_BIN", folder)
        with pytest.raises(ServerUnavailable, match=r"mysql97 is not available: .*MariaDB.*, not MySQL 9\.7.* Remedy"):
            find_programs(MYSQL97)


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_server_is_started_on_a_loopback_port_that_the_kernel_gives_to_no_client(
    server: PostgresServer,
) -> None:
    with psycopg.connect(server.url()) as connection:
        shown = connection.execute("select current_setting('listen_addresses'), inet_server_port()").fetchone()
    assert shown == ("127.0.0.1", server.port)
    assert server.port < 32768


def test_a_run_that_was_given_servers_starts_none_and_names_those_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DIBS_TEST_SERVERS", '{"postgres18": "postgresql://given"}')
    with running(["postgres18"]) as urls:
        assert urls == {"postgres18": "postgresql://given"}
    with pytest.raises(ServerUnavailable, match="postgres15 is not available"), running(["postgres15"]):
        pass


@pytest.mark.parametrize(
    ("ci", "allowed", "fails"),
    [("true", "", True), ("true", "mariadb1011", True), ("true", "mariadb1011, mysql97", False), ("", "", False)],
)
def test_a_missing_server_fails_the_run_in_ci_unless_it_is_allowed_by_its_name(
    monkeypatch: pytest.MonkeyPatch, ci: str, allowed: str, fails: bool
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("DIBS_ALLOW_MISSING", allowed)
    monkeypatch.setenv("DIBS_TEST_SERVERS", '{"mariadb1011": "mariadb://never stands in"}')
    with shared_servers(["mysql97", "mariadb1011"]) as (environment, result):
        assert json.loads(environment["DIBS_TEST_SERVERS"]).keys() == {"mariadb1011"}
    assert result.failed is fails
    assert result.remark == "mariadb1011 WITHOUT mysql97"


@pytest.mark.parametrize("pins", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_every_pin_has_a_hash_and_none_names_a_host(pins: Path) -> None:
    text = pins.read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    for pin in re.split(r"\n(?=\w)", text)[1:]:
        assert "--hash=sha256:" in pin, pin
