"""The servers that tests run on keep their own promises: docs in `tests/servers`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers import PostgresServer, ServerUnavailable, running
from tests.servers.processes import processes_in, wait_until

ROOT = Path(__file__).resolve().parents[2]


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


def test_nothing_is_left_of_a_server_whose_owner_was_killed(server: PostgresServer) -> None:
    program = (
        "from tests.servers import PostgresServer\n"
        "server = PostgresServer(18); server.start(); print(server.data, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        data = Path(owner.stdout.readline().strip())
        assert processes_in(data)
        owner.kill()
    assert wait_until(lambda: not processes_in(data) and not data.parent.exists(), seconds=20)


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


@pytest.mark.parametrize("pins", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_every_pin_has_a_hash_and_none_names_a_host(pins: Path) -> None:
    text = pins.read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    for pin in re.split(r"\n(?=\w)", text)[1:]:
        assert "--hash=sha256:" in pin, pin
