"""`dibs queue`, `stats`, `db`, `health` and `bench`: on every database."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from dibs import Dibs
from tests.support.databases import Database, Postgres
from tests.surface.terminal import SHOP, Terminal, interrupt


@pytest.fixture
def terminal(database: Database, tmp_path: Path) -> Terminal:
    """An empty folder, on each database."""
    (tmp_path / "empty").mkdir()
    return Terminal(tmp_path / "empty", database.url)


@pytest.fixture
def door(terminal: Terminal) -> Iterator[Dibs]:
    """The same database."""
    door = Dibs(terminal.environment["DIBS_URL"])
    yield door
    door.close()


def test_queues_are_listed_with_what_is_in_them(terminal: Terminal, door: Dibs) -> None:
    assert terminal.run("queue", "list", "--json").json == {"queues": []}
    door.enqueue_many([door.job("a", queue="mail") for _ in range(3)])
    door.enqueue("a", queue="mail", delay="1h")
    door.ack(door.dequeue(["mail"])[0])
    door.dequeue(["mail"])
    [queue] = terminal.run("queue", "list", "--json").json["queues"]
    assert queue["name"] == "mail"
    assert {status: count for status, count in queue["jobs"].items() if count} == {
        "ready": 1,
        "scheduled": 1,
        "claimed": 1,
    }
    assert queue["finished"]["completed"] == 1
    assert terminal.run("queue", "list").lines[1].split()[0] == "mail"


def test_a_queue_is_paused_and_resumed(terminal: Terminal, door: Dibs) -> None:
    door.enqueue("a", queue="mail")
    terminal.run("queue", "pause", "mail", "--reason", "provider is down")
    shown = terminal.run("queue", "show", "mail", "--json").json
    assert shown["pause_reason"] == "provider is down"
    assert shown["paused_at"].endswith("Z")
    assert "provider is down" in terminal.run("queue", "list").out
    assert door.dequeue(["mail"]) == []
    terminal.run("queue", "resume", "mail")
    assert terminal.run("queue", "show", "mail", "--json").json["paused_at"] is None


def test_settings_of_a_queue_are_set_shown_and_unset(terminal: Terminal, door: Dibs) -> None:
    door.enqueue("a", queue="mail")
    options = ["--lease", "5m", "--timeout", "1h", "--max-attempts", "9", "--max-crashes", "2"]
    options += ["--backoff", "polynomial:3:10s", "--retention", "7d", "--retention", "dead=keep"]
    settings = terminal.run("queue", "set", "mail", *options, "--json").json["settings"]
    assert (settings["lease"], settings["timeout"], settings["max_attempts"], settings["max_crashes"]) == (
        300,
        3600,
        9,
        2,
    )
    assert (settings["backoff"]["shape"], settings["backoff"]["factor"], settings["backoff"]["unit"]) == (
        "polynomial",
        3,
        10,
    )
    assert settings["retention"] == {"completed": 604800, "cancelled": 604800, "discarded": 604800, "dead": None}
    left = terminal.run("queue", "set", "mail", "--unset", "lease", "--unset", "backoff", "--json").json["settings"]
    assert "lease" not in left
    assert "backoff" not in left
    assert "9" in terminal.run("queue", "show", "mail").out


@pytest.mark.parametrize(
    "text", ["none", "fixed:30s", "polynomial", "polynomial:2:1m", "exponential", "exponential:1s:3:0"]
)
def test_every_shape_of_backoff_can_be_written(tmp_path: Path, text: str) -> None:
    terminal = Terminal(tmp_path, "sqlite:///jobs.db")
    terminal.run("enqueue", "a", "--unregistered")
    settings = terminal.run("queue", "set", "default", "--backoff", text, "--json").json["settings"]
    assert settings["backoff"]["shape"] == text.partition(":")[0]


def test_a_backoff_or_setting_that_cannot_be_is_refused(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "sqlite:///jobs.db")
    terminal.run("enqueue", "a", "--unregistered")
    for text in ("linear", "fixed", "fixed:soon", "polynomial:x", "exponential:1s:2:7"):
        assert "[bad-backoff]" in terminal.run("queue", "set", "default", "--backoff", text, code=2).err
    assert "[nothing-to-set]" in terminal.run("queue", "set", "default", code=2).err
    terminal.run("queue", "set", "default", "--retention", "lost=7d", code=2)


def test_purging_discards_what_waits_and_asks_first(terminal: Terminal, door: Dibs) -> None:
    door.enqueue_many([door.job("a", queue="mail") for _ in range(3)])
    [held] = door.dequeue(["mail"])
    assert terminal.run("queue", "purge", "mail", "--dry-run", "--json").json["matched"] == 2
    terminal.run("queue", "purge", "mail", code=2)
    assert terminal.run("queue", "purge", "mail", "--yes", "--json").json["changed"] == 2
    assert door.count(status="discarded") == 2
    door.ack(held)


def test_statistics_are_counted_by_lane_and_outcome(terminal: Terminal, door: Dibs) -> None:
    door.enqueue_many([door.job("a", queue="mail", priority=150) for _ in range(2)])
    door.ack(door.dequeue(["mail"])[0])
    stats = terminal.run("stats", "--since", "1d", "--json").json
    assert [(lane["queue"], lane["priority"], lane["status"], lane["jobs"]) for lane in stats["live"]] == [
        ("mail", 150, "ready", 1)
    ]
    assert stats["finished"] == [{"queue": "mail", "status": "completed", "jobs": 1}]
    assert (stats["span"], stats["capped"]) == (86400, False)
    assert "150" in terminal.run("stats").out


def test_statistics_can_be_watched_as_lines(terminal: Terminal, door: Dibs) -> None:
    door.enqueue("a")
    with terminal.start("stats", "--watch", "--every", "100ms", "--jsonl") as watching:
        assert watching.stdout is not None
        for _ in range(2):
            assert json.loads(watching.stdout.readline())["live"][0]["jobs"] == 1
        assert interrupt(watching) == 130
    assert "[json-stream]" in terminal.run("stats", "--watch", "--json", code=2).err


def test_pruning_forgets_finished_jobs_only_and_asks_first(terminal: Terminal, door: Dibs) -> None:
    door.enqueue_many([door.job("a") for _ in range(3)])
    for job in door.dequeue(limit=2):
        door.ack(job)
    assert terminal.run("db", "prune", "--json").json == {"matched": 0, "pruned": 0, "dry_run": False}
    old = ["--older-than", "0s", "--queue", "default"]
    assert terminal.run("db", "prune", *old, "--dry-run", "--json").json["matched"] == 2
    assert "[confirmation-needed]" in terminal.run("db", "prune", *old, code=2).err
    assert terminal.run("db", "prune", *old, "--yes", "--json").json["pruned"] == 2
    assert door.count() == 1


def test_migrating_twice_does_nothing_the_second_time(terminal: Terminal) -> None:
    assert terminal.run("db", "migrate", "--json").json == {"applied": [], "missing": []}
    status = terminal.run("db", "status", "--json").json
    assert status["current"] is True
    assert status["steps"][0] == {"version": 1, "name": "core", "applied": True}


def test_a_new_database_is_migrated_when_somebody_says_so(postgres: Postgres, tmp_path: Path) -> None:
    with fresh(postgres) as url:
        terminal = Terminal(tmp_path, url)
        assert terminal.run("db", "status", "--json", code=6).json["current"] is False
        assert "core" in terminal.run("db", "migrate", "--dry-run").err
        assert "[schema-outdated]" in terminal.run("job", "list", code=6).err
        assert terminal.run("db", "migrate", "--json").json["applied"][0] == "core"
        assert terminal.run("db", "status", "--json").json["current"] is True


def test_the_printed_sql_makes_the_tables_dibs_needs(postgres: Postgres, tmp_path: Path) -> None:
    with fresh(postgres) as url:
        terminal = Terminal(tmp_path, url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(terminal.run("db", "sql").out.encode())
        assert terminal.run("db", "status", "--json").json["current"] is True
        assert "create" not in terminal.run("db", "sql", "--after", 9_999).out.partition("insert")[2]


def test_the_printed_sql_of_sqlite_makes_the_tables_too(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "sqlite:///made.db")
    script = terminal.run("db", "sql").out
    assert not (tmp_path / "made.db").exists()
    connection = sqlite3.connect(tmp_path / "made.db")
    connection.executescript(script)
    connection.close()
    assert terminal.run("db", "status", "--json").json["current"] is True


class fresh:
    """A database without tables, on the same server."""

    def __init__(self, postgres: Postgres) -> None:
        self._control = postgres.control
        self._url = urlsplit(postgres.url)
        self._name = f"dibs_cli_{os.getpid()}"

    def __enter__(self) -> str:
        self._control.execute(f"create database {self._name}".encode())
        return self._url._replace(path=f"/{self._name}").geturl()

    def __exit__(self, *_: object) -> None:
        self._control.execute(f"drop database {self._name} with (force)".encode())


def test_health_tells_by_its_exit_code_and_imports_nobodys_code(terminal: Terminal) -> None:
    terminal.run("enqueue", "a", "--unregistered", "--queue", "mail")
    terminal.write("jobs.py", "from dibs import Dibs\nraise RuntimeError('imported')\n")
    terminal.write("dibs.toml", 'app = "jobs:jobs"\n')
    answer = terminal.run("health", "--json").json
    assert answer["ok"] is True
    assert answer["url"].startswith(terminal.environment["DIBS_URL"].partition("://")[0])
    unserved = terminal.run("health", "--queue", "mail", "--json", code=1)
    assert (unserved.json["ok"], unserved.json["unserved"]) == (False, ["mail"])
    assert "Known: mail" in terminal.run("health", "--queue", "mial", code=3).err
    terminal.run("health", code=5, DIBS_URL="postgresql://postgres@127.0.0.1:1/x")


def test_a_measurement_leaves_nothing_behind(terminal: Terminal, door: Dibs, database: Database) -> None:
    kept = door.enqueue("a", delay="1h")
    rates = terminal.run("bench", "--jobs", 300, "--json").json["per_second"]
    assert set(rates) == {"enqueue", "enqueue_many", "run"}
    assert all(rate > 0 for rate in rates.values())
    assert [queue["name"] for queue in terminal.run("queue", "list", "--json").json["queues"]] == ["default"]
    assert (database.count("job"), database.count("history")) == (1, 0)
    assert door.get(kept.id).status == "scheduled"
    assert "jobs/s" in terminal.run("bench", "--jobs", 100).out


def test_a_measurement_waits_for_another_one(terminal: Terminal, door: Dibs) -> None:
    door.enqueue("dibs.bench.nothing", queue="dibs.bench")
    [held] = door.dequeue(["dibs.bench"])
    assert "[bench-runs]" in terminal.run("bench", "--jobs", 100, code=4).err
    door.ack(held)
    terminal.write("jobs.py", SHOP)
    terminal.run("bench", "--jobs", 100)
