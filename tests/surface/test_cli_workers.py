"""`dibs worker` and `dibs dev`: run jobs, stop when told, start again when the code changes."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dibs import Dibs
from tests.support.databases import Database
from tests.support.waiting import wait_until
from tests.surface.terminal import PATIENCE, SHOP, Terminal, interrupt, line_with

HANG = """
@jobs.task
def hang() -> None:
    import threading
    threading.Event().wait()
"""


@pytest.fixture
def terminal(database: Database, tmp_path: Path) -> Terminal:
    """A folder with a little application, on each database."""
    terminal = Terminal(tmp_path / "shop", database.url)
    terminal.write("jobs.py", SHOP)
    return terminal


@pytest.fixture
def door(terminal: Terminal) -> Iterator[Dibs]:
    """The same database, without the application."""
    door = Dibs(terminal.environment["DIBS_URL"])
    yield door
    door.close()


@pytest.fixture
def small(tmp_path: Path) -> Terminal:
    """The same on SQLite only."""
    terminal = Terminal(tmp_path / "shop", "sqlite:///jobs.db")
    terminal.write("jobs.py", SHOP)
    return terminal


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_worker_runs_what_is_due_and_ends_when_nothing_is(terminal: Terminal, door: Dibs) -> None:
    handles = door.enqueue_many([door.job("greet", {"name": str(n)}, queue="mail") for n in range(50)])
    later = door.enqueue("greet", {"name": "later"}, queue="mail", delay="1h")
    said = terminal.run("worker", "run", "jobs:jobs", "--until-empty")
    assert "stopped: 50 completed" in said.err.splitlines()[-1]
    assert said.out == ""
    assert {handle.status() for handle in handles} == {"completed"}
    assert later.status() == "scheduled"


def test_a_worker_serves_only_the_queues_it_is_given(terminal: Terminal, door: Dibs) -> None:
    served, other = door.enqueue("greet", {"name": "x"}, queue="mail"), door.enqueue("greet", {"name": "x"}, queue="b")
    terminal.run("worker", "run", "--queues", "mail:10,default", "--until-empty", "--poll-only")
    assert (served.status(), other.status()) == ("completed", "ready")


def test_a_worker_that_ends_counts_what_became_of_its_attempts(small: Terminal) -> None:
    for task in ("fail", "fail", "greet"):
        small.run("enqueue", task, *(["name=Ada"] if task == "greet" else []))
    assert "stopped: 1 completed, 2 dead" in small.run("worker", "run", "--until-empty").err
    assert "没有运行任何任务" in small.run("worker", "run", "--until-empty", DIBS_LANG="zh").err


def test_the_first_signal_is_told_and_the_second_forces(small: Terminal) -> None:
    small.write("jobs.py", SHOP + HANG)
    job_id = small.run("enqueue", "hang").out.strip()
    with small.start("worker", "run", "--grace", "5m") as worker:
        wait_until(lambda: _status(small, job_id) in ("claimed", "running"), "the job to run", PATIENCE)
        worker.send_signal(signal.SIGINT)
        assert "5m at most" in line_with(worker, "second Ctrl-C")
        worker.send_signal(signal.SIGINT)
        line_with(worker, "Ending at once")
        line_with(worker, "1 handed back")
        assert worker.wait(PATIENCE) == 0


def test_several_processes_share_the_work_and_end_together(terminal: Terminal, door: Dibs) -> None:
    handles = door.enqueue_many([door.job("greet", {"name": str(n)}, queue="mail") for n in range(200)])
    said = terminal.run("worker", "run", "--processes", 2, "--until-empty")
    assert "in 2 processes" in said.err
    assert {handle.status() for handle in handles} == {"completed"}


def test_a_process_that_ends_by_itself_is_replaced_and_one_that_hangs_is_killed(small: Terminal) -> None:
    door = Dibs(f"sqlite:///{small.folder}/jobs.db")
    with small.start("worker", "run", "--processes", 2, "--grace", "0s") as parent:
        wait_until(lambda: len(door.workers()) == 2, "both workers to be heard of", PATIENCE)
        first, second = (worker.pid for worker in door.workers())
        os.kill(first, signal.SIGTERM)
        line_with(parent, "was not told to")
        wait_until(lambda: {worker.pid for worker in door.workers()} - {first, second}, "the next worker", PATIENCE)
        os.kill(second, signal.SIGSTOP)
        parent.terminate()
        line_with(parent, "is killed")
        assert parent.wait(PATIENCE) == 1
        assert not _lives(second)
    door.close()


@pytest.mark.parametrize(
    ("flags", "words"),
    [(("--lease", "0"), "lease='0s' is shorter than a second"), (("--name", "my worker"), "'my worker'")],
)
@pytest.mark.parametrize("processes", [1, 2])
def test_an_impossible_option_is_refused_before_anything_starts(
    small: Terminal, flags: tuple[str, str], words: str, processes: int
) -> None:
    assert words in small.run("worker", "run", "--processes", processes, *flags, code=2).err
    said = small.run("worker", "run", "--processes", processes, code=2, DIBS_CONCURRENCY="many").err
    assert said.count("[bad-setting]") == 1


def test_workers_are_listed_while_they_are_there(terminal: Terminal, door: Dibs) -> None:
    assert "No worker" in terminal.run("worker", "list").err
    with terminal.start("worker", "run", "--queues", "mail,default", "--concurrency", 3, "--name", "anna") as worker:
        wait_until(door.workers, "the worker to be heard of", PATIENCE)
        [seen] = terminal.run("worker", "list", "--json").json["workers"]
        assert seen["id"].startswith("anna:")
        assert (seen["pid"], seen["queues"], seen["concurrency"]) == (worker.pid, ["default", "mail"], 3)
        assert terminal.run("worker", "list").lines[1].startswith(seen["id"])
        assert terminal.run("health", "--queue", "mail", "--json").json["ok"] is True
        assert interrupt(worker) == 0
    assert terminal.run("worker", "list", "--json").json == {"workers": []}


def test_workers_of_two_versions_are_a_warning(terminal: Terminal, door: Dibs, database: Database) -> None:
    with terminal.start("worker", "run"), terminal.start("worker", "run"):
        wait_until(lambda: len(door.workers()) == 2, "both workers to be heard of", PATIENCE)
        [(pid,)] = database.query(f"select min(pid) from {database.table('worker')}")
        database.query(f"update {database.table('worker')} set version = '0.0.9' where pid = {pid}")
        assert "[mixed-versions]" in terminal.run("worker", "list").err


def test_a_worker_that_is_silent_is_called_lost(terminal: Terminal, door: Dibs, database: Database) -> None:
    door.enqueue("greet", {"name": "x"}, queue="mail")
    with terminal.start("worker", "run", "--queues", "mail") as worker:
        wait_until(door.workers, "the worker to be heard of", PATIENCE)
        worker.kill()
        worker.wait(PATIENCE)
    span = {"sqlite": "30 * 1000000", "postgres": "interval '30 seconds'"}.get(database.dialect, "interval 30 second")
    database.query(f"update {database.table('worker')} set beat_at = beat_at - {span}")
    assert "[worker-lost]" in terminal.run("worker", "list").err
    assert terminal.run("worker", "list", "--json").json["workers"][0]["lost"] is True
    assert "[worker-lost]" in terminal.run("health", "--queue", "mail", code=1).err
    assert ("warning", "worker-lost") in [
        (item["verdict"], item["code"]) for item in terminal.run("check", "--json").json["checks"]
    ]
    assert "lost" in terminal.run("worker", "list").lines[1].split()


def test_a_terminated_worker_hands_back_what_it_holds(small: Terminal) -> None:
    small.write("jobs.py", SHOP + HANG)
    job_id = small.run("enqueue", "hang").out.strip()
    with small.start("worker", "run", "--grace", "0s") as worker:
        wait_until(lambda: _status(small, job_id) in ("claimed", "running"), "the job to run", PATIENCE)
        worker.terminate()
        assert worker.wait(PATIENCE) == 0
    handed_back = small.run("job", "show", job_id, "--json").json
    assert handed_back["attempts"] == 0
    assert handed_back["status"] in ("ready", "scheduled", "retrying")


def _status(terminal: Terminal, job_id: str) -> str:
    return str(terminal.run("job", "show", job_id, "--json").json["status"])


def test_the_health_of_a_worker_is_told_on_its_port(small: Terminal) -> None:
    port = _free_port()
    with small.start("worker", "run", "--health-port", port) as worker:
        line_with(worker, "/readyz")
        assert _page(port, "/livez")[0] == 200
        code, page = _page(port, "/readyz")
        assert (code, page["ok"]) == (200, True)
        assert page["silent_for"]
        assert _page(port, "/other")[0] == 404
        assert interrupt(worker) == 0


def test_the_health_of_several_processes_is_told_by_their_parent(small: Terminal) -> None:
    port, door = _free_port(), Dibs(f"sqlite:///{small.folder}/jobs.db")
    with small.start("worker", "run", "--processes", 2, "--health-port", port) as parent:
        line_with(parent, "/readyz")
        wait_until(lambda: _page(port, "/readyz")[0] == 200, "both processes to live", PATIENCE)
        assert list(_page(port, "/readyz")[1]["silent_for"]) == ["process 1", "process 2"]
        wait_until(lambda: len(door.workers()) == 2, "both workers to be heard of", PATIENCE)
        assert interrupt(parent) == 0
    door.close()


def _page(port: int, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_settings_of_a_worker_come_from_flag_environment_and_file(small: Terminal) -> None:
    small.write("dibs.toml", "concurrency = 7\nqueues = ['mail']\nprocesses = 1\n")
    assert _settings_of(small) == (7, ["mail"])
    assert _settings_of(small, DIBS_CONCURRENCY="8", DIBS_QUEUES="a,b") == (8, ["a", "b"])
    assert _settings_of(small, "--concurrency", "9", "--queues", "c", DIBS_CONCURRENCY="8") == (9, ["c"])


def _settings_of(terminal: Terminal, *flags: str, **environment: str) -> tuple[int, list[str]]:
    door = Dibs(f"sqlite:///{terminal.folder}/jobs.db")
    with terminal.start("worker", "run", *flags, **environment) as worker:
        wait_until(door.workers, "the worker to be heard of", PATIENCE)
        [seen] = door.workers()
        assert interrupt(worker) == 0
    door.close()
    return seen.concurrency, seen.queues or []


def test_development_starts_again_when_the_code_changes(small: Terminal) -> None:
    with small.start("dev") as developing:
        line_with(developing, "tasks: fail, greet")
        small.write("jobs.py", SHOP.replace("hello", "good day"))
        line_with(developing, "starting again")
        said = small.run("enqueue", "greet", "name=Ada", "--wait")
        assert json.loads(said.out) == "good day Ada"
        small.write("jobs.py", "from dibs import Dibs\nthis is no Python\n")
        line_with(developing, "[app-broken]")
        small.write("jobs.py", SHOP)
        line_with(developing, "tasks: fail, greet")
        assert json.loads(small.run("enqueue", "greet", "name=Ada", "--wait").out) == "hello Ada"
        assert interrupt(developing) == 0


def test_development_makes_the_tables_of_any_database(terminal: Terminal, database: Database) -> None:
    with terminal.start("dev") as developing:
        line_with(developing, "tasks: ")
        assert json.loads(terminal.run("enqueue", "greet", "name=Ada", "--wait").out) == "hello Ada"
        developing.terminate()
        assert developing.wait(PATIENCE) == 0


def test_development_ends_a_worker_that_hangs(small: Terminal) -> None:
    door = Dibs(f"sqlite:///{small.folder}/jobs.db")
    with small.start("dev", DIBS_GRACE="0s") as developing:
        wait_until(door.workers, "the worker to be heard of", PATIENCE)
        [worker] = door.workers()
        os.kill(worker.pid, signal.SIGSTOP)
        assert interrupt(developing) == 0
        assert not _lives(worker.pid)
    door.close()


def test_no_worker_outlives_the_one_who_develops(small: Terminal) -> None:
    door = Dibs(f"sqlite:///{small.folder}/jobs.db")
    with small.start("dev") as developing:
        wait_until(door.workers, "the worker to be heard of", PATIENCE)
        [worker] = door.workers()
        developing.send_signal(signal.SIGKILL)
        developing.wait(PATIENCE)
        wait_until(lambda: not _lives(worker.pid), "the end of the worker", PATIENCE)
    door.close()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
