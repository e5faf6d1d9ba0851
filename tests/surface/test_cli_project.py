"""`dibs init`, `check` and `config`, and how the command line finds the application."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from dibs.door.settings import DEFAULTS
from tests.support.databases import Database
from tests.surface.terminal import SHOP, Terminal, interrupt, line_with


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """An empty folder."""
    return Terminal(tmp_path)


def _verdicts(terminal: Terminal, code: int = 0, **environment: str) -> dict[str, tuple[str, str]]:
    checks = terminal.run("check", "--json", code=code, **environment).json["checks"]
    return {item["name"]: (item["verdict"], item["code"]) for item in checks}


def test_from_an_empty_folder_to_a_finished_job_in_three_commands(terminal: Terminal) -> None:
    terminal.run("init")
    with terminal.start("dev") as developing:
        line_with(developing, "hello")
        assert json.loads(terminal.run("enqueue", "hello", "name=Ada", "--wait").out) == "Hello, Ada!"
        assert interrupt(developing) == 0


def test_the_first_project_speaks_the_users_language(terminal: Terminal) -> None:
    terminal.run("init", DIBS_LANG="zh")
    terminal.run("enqueue", "hello", "name=世界")
    terminal.run("worker", "run", "--until-empty")
    assert terminal.run("job", "list", "--json").json["jobs"][0]["result"] == "你好，世界！"


def test_a_first_project_makes_what_is_missing_and_leaves_the_rest(terminal: Terminal) -> None:
    assert terminal.run("init").lines == ["jobs.py", "dibs.toml"]
    terminal.write("jobs.py", SHOP)
    again = terminal.run("init")
    assert again.lines == []
    assert [line.partition(" ")[0] for line in again.err.splitlines()] == ["jobs.py", "dibs.toml"]
    assert (terminal.folder / "jobs.py").read_text(encoding="utf-8") == SHOP
    (terminal.folder / "dibs.toml").unlink()
    assert terminal.run("init").lines == ["dibs.toml"]
    (terminal.folder / "jobs.py").unlink()
    assert terminal.run("init").lines == ["jobs.py"]


def test_a_first_project_works_with_the_program_that_is_there(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP.replace("jobs =", "shop =").replace("@jobs", "@shop"))
    terminal.run("init")
    assert json.loads(terminal.run("check", "--json").out)["checks"][0]["detail"].startswith("jobs:shop")


def test_settings_are_added_to_a_project_that_has_a_file_for_them(terminal: Terminal) -> None:
    terminal.write("shop/pyproject.toml", '[project]\nname = "shop"\n')
    terminal.run("init", "shop")
    table = tomllib.loads((terminal.folder / "shop/pyproject.toml").read_text(encoding="utf-8"))
    assert table["project"] == {"name": "shop"}
    assert table["tool"]["dibs"] == {"url": "sqlite:///dibs.db", "app": "jobs:jobs"}
    assert not (terminal.folder / "shop/dibs.toml").exists()


def test_everything_in_order_is_checked_and_shown(database: Database, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "shop", database.url)
    terminal.write("jobs.py", SHOP)
    with terminal.start("worker", "run") as worker:
        line_with(worker, "tasks: ")
        verdicts = _verdicts(terminal)
        while verdicts["workers"] != ("ok", ""):  # it is heard of a moment after it has started
            verdicts = _verdicts(terminal)
        assert verdicts == dict.fromkeys(("application", "tasks", "database", "schema", "clock", "workers"), ("ok", ""))
        assert interrupt(worker) == 0
    assert "fail (default), greet (mail)" in terminal.run("check").out
    assert _verdicts(terminal)["workers"] == ("warning", "no-worker")


def test_what_fails_in_a_check_gives_the_exit_code(terminal: Terminal) -> None:
    assert _verdicts(terminal, code=3)["application"] == ("failed", "app-not-found")
    terminal.write("jobs.py", SHOP)
    assert _verdicts(terminal)["database"] == ("warning", "file-missing")
    assert not (terminal.folder / "dibs.db").exists()
    away = _verdicts(terminal, code=5, DIBS_URL="postgresql://postgres@127.0.0.1:1/x")
    assert away["database"] == ("failed", "database-unreachable")
    assert away["application"] == ("ok", "")
    terminal.write("jobs.py", SHOP + "\n@jobs.task\ndef star(*args): ...\n")
    assert _verdicts(terminal, code=2)["tasks"] == ("failed", "invalid-option")


def test_a_check_tells_of_settings_that_mean_nothing(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP)
    terminal.write("dibs.toml", "concurency = 7\n")
    assert _verdicts(terminal)["settings"] == ("warning", "unknown-setting")
    said = terminal.run("config", "show", DIBS_CONCURENCY="7").err
    assert "'concurency' in dibs.toml" in said
    assert "Did you mean concurrency? Settings: url, app" in said
    assert "'DIBS_CONCURENCY' in the environment" in said
    assert "Did you mean DIBS_CONCURRENCY?" in said
    seen = terminal.run("check", "--json", DIBS_CONCURENCY="7").json["checks"]
    assert [item["detail"].split()[0] for item in seen if item["code"] == "unknown-setting"] == [
        "'concurency'",
        "'DIBS_CONCURENCY'",
    ]


def test_variables_that_mean_something_else_are_no_settings_and_no_mistakes(terminal: Terminal) -> None:
    names = ("DEBUG", "LANG", "ALLOW_MISSING", "TEST_SERVERS", "TEST_PG18_BIN", "BENCH_FOLDER", "DEMO_URL")
    said = terminal.run("config", "show", **{f"DIBS_{name}": "1" for name in names}, MY_DIBS_APP="x")
    assert said.err == ""


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("grace", "abc", "bad-duration"),
        ("concurrency", "many", "bad-setting"),
        ("processes", "0", "bad-setting"),
        ("log_level", "loud", "bad-log-level"),
        ("payload_limit", "1k", "bad-setting"),
        ("queues", "mail:x", "bad-queues"),
    ],
)
def test_a_setting_that_nobody_can_use_is_shown_as_such_and_fails_the_check(
    terminal: Terminal, name: str, value: str, code: str
) -> None:
    terminal.write("jobs.py", SHOP)
    wrong = {f"DIBS_{name.upper()}": value}
    said = terminal.run("config", "show", **wrong)
    assert [name, value] in [line.split()[:2] for line in said.lines]
    assert f"[{code}]" in said.err
    assert value in said.err
    shown = {
        item["name"]: item["problem"] for item in terminal.run("config", "show", "--json", **wrong).json["settings"]
    }
    assert [other for other, problem in shown.items() if problem] == [name]
    assert _verdicts(terminal, code=2, **wrong)["settings"] == ("failed", code)


def test_every_setting_is_shown_with_its_origin(terminal: Terminal) -> None:
    terminal.write("dibs.toml", 'concurrency = 7\nurl = "sqlite:///file.db"\n')
    shown = terminal.run("config", "show", "--json", "--url", "sqlite:///flag.db", DIBS_GRACE="5s").json["settings"]
    found = {item["name"]: (item["value"], item["origin"]) for item in shown}
    assert set(found) == set(DEFAULTS)
    assert found["url"] == ("sqlite:///flag.db", "--url")
    assert found["grace"] == ("5s", "$DIBS_GRACE")
    assert found["concurrency"] == (7, "dibs.toml")
    assert found["processes"] == (1, "default")
    assert "默认" in terminal.run("config", "show", DIBS_LANG="zh").out


def test_settings_of_a_project_file_count_too_and_dibs_own_file_first(terminal: Terminal) -> None:
    terminal.write("pyproject.toml", "[tool.dibs]\nconcurrency = 5\n")
    assert ["concurrency", "5", "pyproject.toml"] in [line.split() for line in terminal.run("config", "show").lines]
    terminal.write("dibs.toml", "concurrency = 6\n")
    assert ["concurrency", "6", "dibs.toml"] in [line.split() for line in terminal.run("config", "show").lines]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@host:5432/app", "postgresql://ann:***@host:5432/app"),
        ("postgresql://ann@host/app?password=s3cret", "postgresql://ann@host/app?password=***"),
        ("postgresql://ann:p%40s3cret@host/app?sslmode=require", "postgresql://ann:***@host/app?sslmode=require"),
        ("sqlite:///here/file.db", "sqlite:///here/file.db"),
    ],
)
def test_secrets_are_masked_wherever_a_url_is_shown(terminal: Terminal, url: str, shown: str) -> None:
    [found] = [
        item
        for item in terminal.run("config", "show", "--json", DIBS_URL=url).json["settings"]
        if item["name"] == "url"
    ]
    assert found["value"] == shown


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("jobs.py", ()),
        ("app.py", ()),
        ("main.py", ()),
        ("src/jobs.py", ()),
        ("shop/work.py", ("shop.work:jobs",)),
        ("shop/work.py", ("shop.work",)),
        ("shop/work.py", ("shop/work.py:jobs",)),
        ("src/shop/work.py", ("shop.work:jobs",)),
    ],
)
def test_an_application_is_found_in_the_current_folder(
    terminal: Terminal, file: str, arguments: tuple[str, ...]
) -> None:
    terminal.write(file, SHOP)
    said = terminal.run("worker", "run", *arguments, "--until-empty")
    assert "2 tasks: fail, greet" in said.err


def test_an_application_is_named_by_flag_environment_and_file(terminal: Terminal) -> None:
    for name in ("one", "two", "three"):
        terminal.write(f"{name}.py", SHOP.replace("def greet", f"def greet_{name}"))
    terminal.write("dibs.toml", 'app = "one:jobs"\n')
    assert "greet_one" in terminal.run("check").out
    assert "greet_two" in terminal.run("check", DIBS_APP="two:jobs").out
    assert "greet_three" in terminal.run("check", "--app", "three:jobs", DIBS_APP="two:jobs").out


def test_an_application_that_is_not_found_lists_what_was_tried_and_why(terminal: Terminal) -> None:
    terminal.write("app.py", "import os\nos._exit(99)\n")
    terminal.write("main.py", "from dibs import Dibs\none, two = Dibs('sqlite://'), Dibs('sqlite://')\n")
    said = terminal.run("worker", "run", code=3).err
    assert "jobs.py: there is no such file" in said
    assert "app.py: does not mention dibs, so it was not imported" in said
    assert "main.py: holds several Dibs objects (one, two)" in said


def test_one_object_under_two_names_is_one_application(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP + "\nalso = jobs\n")
    assert "jobs:jobs" in terminal.run("check").out


def test_what_a_module_prints_while_it_is_loaded_spoils_no_data(terminal: Terminal) -> None:
    terminal.write("jobs.py", "print('loading')\n" + SHOP)
    made = terminal.run("enqueue", "greet", "name=x", "--json")
    assert made.json["created"] is True
    assert "loading" in made.err


def test_the_database_of_the_application_is_looked_at_without_any_setting(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP.replace("Dibs()", "Dibs('sqlite:///own.db')"))
    terminal.run("enqueue", "greet", "name=x")
    assert len(terminal.run("job", "list", "--json").json["jobs"]) == 1
    assert (terminal.folder / "own.db").exists()
    assert not (terminal.folder / "dibs.db").exists()


def test_looking_imports_nobodys_code_where_the_database_is_known(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP)
    terminal.run("enqueue", "greet", "name=x")
    terminal.write("jobs.py", "from dibs import Dibs\nraise RuntimeError\n")
    for command in (["job", "list"], ["stats"], ["queue", "list"], ["worker", "list"], ["db", "status"]):
        terminal.run(*command, DIBS_URL="sqlite:///dibs.db")


def test_a_url_for_once_is_that_of_the_application_too(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP)
    terminal.run("enqueue", "greet", "name=x", "--app", "jobs:jobs", "--url", "sqlite:///once.db")
    terminal.run("worker", "run", "--until-empty", "--url", "sqlite:///once.db")
    assert terminal.run("job", "list", "--json", "--url", "sqlite:///once.db").json["jobs"][0]["status"] == "completed"


def test_looking_never_makes_a_database(terminal: Terminal) -> None:
    commands = [["job", "list"], ["stats"], ["queue", "list"], ["worker", "list"], ["db", "status"], ["health"]]
    for command in [*commands, ["db", "prune"], ["db", "migrate", "--dry-run"], ["queue", "pause", "mail"]]:
        assert "[file-missing]" in terminal.run(*command, code=5).err
    assert not list(terminal.folder.iterdir())
