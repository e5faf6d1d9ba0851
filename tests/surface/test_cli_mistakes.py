"""The twenty likeliest mistakes: each is told by one cause, one remedy and a code with a page, in both languages."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from dibs import Dibs
from dibs.cli.plainer import plainer
from dibs.cli.problems import code_of, exit_code, words
from dibs.errors import DatabaseMissing, DatabaseUnreachable
from dibs.messages import catalogue
from tests.support.databases import Database, Postgres
from tests.surface.terminal import SHOP, Terminal

Said = Callable[..., str]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A folder with a little application on SQLite."""
    terminal = Terminal(tmp_path)
    terminal.write("jobs.py", SHOP)
    return terminal


def _told(terminal: Terminal, mistake: str, *arguments: object, code: int, **environment: str) -> str:
    """Run a command in both languages; each time it tells of the mistake in its own words. Answers the English ones."""
    said = {lang: terminal.run(*arguments, code=code, DIBS_LANG=lang, **environment).err for lang in ("en", "zh")}
    for lang, text in said.items():
        assert f"[{mistake}]" in text, text
        remedy = re.escape(catalogue(lang)[f"error.{mistake}.remedy"])
        pattern = re.sub(r"\\\{[^}]*\\\}", ".*", remedy)
        assert lang == "en" or re.search(pattern, text), text
    assert re.search(r"[一-鿿]", said["zh"])
    assert not re.search(r"[一-鿿]", said["en"])
    assert len(said["en"].splitlines()) >= 2
    return said["en"]


def test_mistake_no_application_is_found(tmp_path: Path) -> None:
    assert "jobs.py: there is no such file" in _told(Terminal(tmp_path), "app-not-found", "worker", "run", code=3)


def test_mistake_the_module_cannot_be_imported(terminal: Terminal) -> None:
    said = _told(terminal, "app-not-importable", "worker", "run", "shop.jobs:jobs", code=3)
    assert str(terminal.folder) in said
    said = _told(terminal, "app-no-attribute", "worker", "run", "jobs:job", code=3)
    assert "It has: jobs" in said
    terminal.write("jobs.py", "import not_there\nfrom dibs import Dibs\n")
    assert "jobs.py:1" in _told(terminal, "app-broken", "worker", "run", code=3)
    terminal.write("jobs.py", "from dibs import Dibs\nimport sys\nsys.exit(0)\n")
    assert "SystemExit" in _told(terminal, "app-broken", "worker", "run", code=3)


def test_mistake_the_task_is_not_registered_in_the_worker(terminal: Terminal) -> None:
    assert "It has: greet" in _told(terminal, "task-not-registered", "enqueue", "gret", "name=x", code=3)
    terminal.run("enqueue", "gret", "--unregistered")
    terminal.write("jobs.py", "from dibs import Dibs\njobs = Dibs()\n")
    _told(terminal, "no-tasks", "worker", "run", code=3)


@pytest.mark.parametrize(
    "url",
    [
        "localhost/app",
        "mongodb://localhost/app",
        "sqlite://file.db",
        "postgresql://h/x?pooler=yes",
        "postgresql://h:port/x",
    ],
)
def test_mistake_the_url_is_wrong(terminal: Terminal, url: str) -> None:
    _told(terminal, "invalid-url", "job", "list", "--url", url, code=2)


def test_mistake_the_driver_is_not_installed(terminal: Terminal) -> None:
    terminal.write("psycopg.py", "raise ImportError('no driver')\n")
    said = _told(terminal, "driver-missing", "job", "list", "--url", "postgresql://h/x", code=5, PYTHONPATH=".")
    assert "pip install 'dibs[postgres]'" in said


def test_mistake_the_server_does_not_answer(terminal: Terminal) -> None:
    _told(terminal, "database-unreachable", "job", "list", "--url", "postgresql://postgres@127.0.0.1:1/x", code=5)


def test_mistake_the_url_names_a_driver(terminal: Terminal) -> None:
    said = _told(terminal, "url-with-driver", "job", "list", "--url", "postgresql+psycopg://h/x", code=2)
    assert "Write postgresql://" in said


@pytest.mark.parametrize(
    ("theirs", "code", "shown"),
    [
        ('FATAL: password authentication failed for user "ann"', "login-refused", 'failed for user "ann"'),
        ('FATAL: role "ann" does not exist', "login-refused", 'h:5432: role "ann" does not exist'),
        ("Connection refused Is the server running on that host", "database-unreachable", "h:5432: Connection refused"),
        ('FATAL: database "shop" does not exist', "database-missing", "Create it first: createdb shop"),
    ],
)
def test_what_the_driver_says_is_told_in_few_words(theirs: str, code: str, shown: str) -> None:
    said = f'connection failed: connection to server at "h", port 5432 failed: {theirs}'
    kind = DatabaseMissing if "database " in theirs else DatabaseUnreachable
    plain = plainer(kind(f"{said}.", "Create it first: createdb NAME"))
    cause, remedy = words(plain)
    assert (code_of(plain), exit_code(plain)) == (code, 5)
    assert shown in f"{cause} {remedy}"
    assert "connection" not in cause


def test_mistake_the_user_is_unknown(terminal: Terminal, postgres: Postgres) -> None:
    parts = urlsplit(postgres.url)
    url = parts._replace(netloc=f"nobody:wrong@{parts.hostname}:{parts.port}").geturl()
    assert len(_told(terminal, "login-refused", "job", "list", "--url", url, code=5).splitlines()) == 3


def test_mistake_the_database_is_missing(terminal: Terminal, postgres: Postgres) -> None:
    url = urlsplit(postgres.url)._replace(path="/nowhere").geturl()
    assert "createdb" in _told(terminal, "database-missing", "job", "list", "--url", url, code=5)
    _told(terminal, "file-missing", "job", "list", "--url", "sqlite:///nowhere.db", code=5)
    _told(terminal, "database-unreachable", "enqueue", "greet", "name=x", "--url", "sqlite:///no/where.db", code=5)


def test_mistake_the_role_has_no_rights(terminal: Terminal, postgres: Postgres) -> None:
    role = f"dibs_weak_{os.getpid()}"
    postgres.query(f"create role {role} login")
    try:
        parts = urlsplit(postgres.url)
        url = parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()
        assert "permission denied" in _told(terminal, "no-rights", "job", "list", "--url", url, code=1)
    finally:
        postgres.query(f"drop role {role}")


def test_mistake_the_schema_is_old(terminal: Terminal, postgres: Postgres) -> None:
    postgres.query("create table kept as select * from dibs.migration; delete from dibs.migration")
    try:
        assert "dibs db migrate" in _told(terminal, "schema-outdated", "health", "--url", postgres.url, code=6)
        said = terminal.run("worker", "run", "--url", postgres.url, code=6).err
        assert "[schema-outdated]" in said
        postgres.query("insert into dibs.migration (version, name, checksum, needs) values (9999, 'later', 'x', 9999)")
        _told(terminal, "schema-too-new", "health", "--url", postgres.url, code=6)
    finally:
        postgres.query("delete from dibs.migration; insert into dibs.migration select * from kept; drop table kept")


def test_mistake_the_port_is_taken(terminal: Terminal) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = _told(terminal, "port-taken", "worker", "run", "--until-empty", "--health-port", port, code=1)
    assert str(port) in said


def test_mistake_sqlite_is_too_old(terminal: Terminal) -> None:
    terminal.write("sitecustomize.py", "import sqlite3\nsqlite3.sqlite_version_info = (3, 34, 1)\n")
    assert "3.38" in _told(terminal, "database-too-old", "job", "list", code=1, PYTHONPATH=".")
    assert "3.38" in terminal.run("check", code=1, PYTHONPATH=".").out


@pytest.mark.parametrize("word", ["times=many", "times:=[1]", "tiems=3", "name:=7", "name:=NaN"])
def test_mistake_an_argument_does_not_fit_the_task(terminal: Terminal, word: str) -> None:
    _told(terminal, "invalid-payload", "enqueue", "greet", *(["name=x"] if "name" not in word else []), word, code=2)


def test_mistake_an_argument_is_larger_than_the_limit(terminal: Terminal) -> None:
    _told(terminal, "payload-too-large", "enqueue", "greet", "name=Ada", code=2, DIBS_PAYLOAD_LIMIT="10")


def test_mistake_an_argument_is_written_in_no_known_way(terminal: Terminal) -> None:
    _told(terminal, "bad-argument", "enqueue", "greet", "Ada", code=2)
    _told(terminal, "bad-json", "enqueue", "greet", "name:={", code=2)


def test_mistake_a_time_has_no_zone(terminal: Terminal) -> None:
    said = _told(terminal, "naive-time", "enqueue", "greet", "name=x", "--at", "2099-01-01T09:00", code=2)
    assert "Asia/Shanghai" in said


@pytest.mark.parametrize(
    ("mistake", "name", "value"),
    [
        ("bad-setting", "DIBS_CONCURRENCY", "many"),
        ("bad-setting", "DIBS_PROCESSES", "0"),
        ("bad-setting", "DIBS_PAYLOAD_LIMIT", "1 MB"),
        ("bad-duration", "DIBS_GRACE", "soon"),
        ("bad-log-level", "DIBS_LOG_LEVEL", "loud"),
        ("bad-queues", "DIBS_QUEUES", "mail:0"),
        ("invalid-name", "DIBS_QUEUES", "mail,,"),
    ],
)
def test_mistake_a_setting_cannot_be(terminal: Terminal, mistake: str, name: str, value: str) -> None:
    said = _told(terminal, mistake, "worker", "run", "--until-empty", code=2, **{name: value})
    assert f"${name}" in said or "mail" in said or "''" in said


def test_mistake_a_file_of_settings_cannot_be_read(terminal: Terminal) -> None:
    terminal.write("dibs.toml", "url = [\n")
    assert "dibs.toml" in _told(terminal, "invalid-option", "job", "list", code=2)


def test_mistake_a_folder_cannot_be_written(terminal: Terminal) -> None:
    terminal.write("taken", "a file\n")
    _told(terminal, "cannot-write", "init", "taken/shop", code=1)


def test_mistake_the_queue_is_unknown(terminal: Terminal) -> None:
    terminal.run("enqueue", "greet", "name=x")
    for command in (
        *(["queue", verb, "maill"] for verb in ("pause", "resume", "show", "purge")),
        *(["job", verb, "--queue", "maill"] for verb in ("list", "retry", "cancel", "discard", "run-now")),
        *(["db", "prune", "--queue", "maill"], ["health", "--queue", "maill"]),
        ["queue", "set", "maill", "--lease", "2m"],
    ):
        assert "Known: mail" in _told(terminal, "unknown-queue", *command, code=3)
    terminal.run("queue", "pause", "maill", "--create")
    assert "the tasks use default, mail" in terminal.run("worker", "run", "--until-empty", "--queues", "mial").err


def test_mistake_no_worker_runs_for_the_queue(terminal: Terminal) -> None:
    job_id = terminal.run("enqueue", "greet", "name=x").out.strip()
    said = _told(terminal, "no-worker", "job", "wait", job_id, "--timeout", "50ms", code=1)
    assert "dibs worker run --queues mail" in said
    _told(terminal, "no-worker", "health", "--queue", "mail", code=1)


def test_mistake_the_clocks_differ(terminal: Terminal) -> None:
    terminal.write("sitecustomize.py", SKEWED)
    terminal.run("enqueue", "greet", "name=x")
    for lang in ("en", "zh"):
        checks = terminal.run("check", "--json", DIBS_LANG=lang, PYTHONPATH=".").json["checks"]
        assert ("warning", "clock-skew") in [(item["verdict"], item["code"]) for item in checks]


SKEWED = """
import time
from functools import partial
real = time.time_ns
time.time_ns = lambda: real() + 3_600 * 10**9
"""


def test_mistake_two_workers_have_different_code(terminal: Terminal) -> None:
    """The versions of dibs are compared by `worker list` and `check`; a job whose task one of them does not know is
    put back by it, and run by the other one."""
    job_id = terminal.run("enqueue", "greet", "name=x").out.strip()
    terminal.write("old.py", "from dibs import Dibs\njobs = Dibs()\n@jobs.task\ndef other() -> None: ...\n")
    with terminal.start("worker", "run", "old:jobs"), terminal.start("worker", "run", "jobs:jobs"):
        terminal.run("job", "wait", job_id)
    assert terminal.run("job", "show", job_id, "--json").json["attempts"] == 1


def test_a_job_of_a_transaction_that_was_rolled_back_is_not_found(terminal: Terminal, postgres: Postgres) -> None:
    jobs = Dibs(postgres.url)
    with psycopg.connect(postgres.url) as connection:
        handle = jobs.enqueue("greet", {"name": "x"}, connection=connection)
        connection.rollback()
    jobs.close()
    said = _told(terminal, "not-found", "job", "show", handle.id, "--url", postgres.url, code=3)
    assert "never committed" in said


def test_a_verb_works_where_an_event_loop_is_running_already(database: Database) -> None:
    jobs = Dibs(database.url)

    async def program() -> str:
        handle = jobs.enqueue("greet", {"name": "x"})
        same = await jobs.aget(handle.id)
        return jobs.get(same.id).status.value

    assert asyncio.run(program()) == "ready"
    jobs.close()


def test_a_fork_after_the_first_connection_breaks_neither_process(database: Database) -> None:
    jobs = Dibs(database.url)
    jobs.enqueue("greet", {"name": "before"})
    child = os.fork()
    if child == 0:
        jobs.enqueue("greet", {"name": "child"})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    jobs.enqueue("greet", {"name": "after"})
    assert {job.payload["name"] for job in jobs.list()} == {"before", "child", "after"}
    jobs.close()


def test_mistake_a_pooler_stands_in_between(terminal: Terminal, postgres: Postgres) -> None:
    with pooled(postgres.url) as url:
        for lang in ("en", "zh"):
            checks = terminal.run("check", "--json", DIBS_LANG=lang, DIBS_URL=url).json["checks"]
            assert [item["code"] for item in checks if item["name"] == "database"] == ["", "pooler"]
        known = terminal.run("check", "--json", DIBS_URL=f"{url}&pooler=transaction").json["checks"]
        assert [item["code"] for item in known if item["name"] == "database"] == [""]
    direct = terminal.run("check", "--json", DIBS_URL=postgres.url).json["checks"]
    assert [item["code"] for item in direct if item["name"] == "database"] == [""]


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """The same server behind a relay that makes up process numbers, as PgBouncer does."""
    server = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as door, ThreadPoolExecutor() as threads:
        threads.submit(_relay, door, (str(server.hostname), server.port), threads)
        place = f"{server.username}@127.0.0.1:{door.getsockname()[1]}"
        try:
            yield server._replace(netloc=place, query="sslmode=disable&gssencmode=disable").geturl()
        finally:
            door.shutdown(socket.SHUT_RDWR)


def _relay(door: socket.socket, server: tuple[str, int | None], threads: ThreadPoolExecutor) -> None:
    with suppress(OSError):  # the end of the door is the end of this
        while True:
            client, _ = door.accept()
            upstream = socket.create_connection(server)
            threads.submit(_pass_on, client, upstream)
            threads.submit(_pass_on, upstream, client)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Bytes from one side to the other; the server's BackendKeyData (K, length 12) gets another process number."""
    with source, suppress(OSError):
        while said := source.recv(65_536):
            key = said.find(b"K\x00\x00\x00\x0c")
            if key >= 0:
                said = said[: key + 5] + b"\x00\x00\x00\x07" + said[key + 9 :]
            target.sendall(said)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
