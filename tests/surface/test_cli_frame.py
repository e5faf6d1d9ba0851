"""The frame of the command line: help in two languages, nothing loaded before it is needed, one code for each end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dibs import __version__
from dibs.cli.grammar import Argument, Command, Group, Option
from dibs.cli.tree import root
from tests.surface.terminal import COMMAND, SHOP, Terminal

HELP_MS = 150
HEAVY = ("rich", "msgspec", "asyncio", "sqlite3", "psycopg", "dibs.door.dibs", "dibs.store", "dibs.worker")
READING = (
    *("worker list", "job list", "job show", "job logs", "job wait", "queue list", "queue show", "stats", "db status"),
    *("check", "config show", "health", "bench", "enqueue", "explain"),
)
STREAMING = ("job watch", "stats")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """An empty folder."""
    return Terminal(tmp_path)


def _commands(group: Group = root, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None, name
        yield " ".join([*path, name]), found
        if isinstance(found, Group):
            yield from _commands(found, (*path, name))


ALL = dict(_commands())
OURS = {path: found for path, found in ALL.items() if isinstance(found, Command)}
LEAVES = {path: found for path, found in OURS.items() if not isinstance(found, Group)}


def test_every_command_of_the_contract_is_there() -> None:
    wanted = """init demo dev worker worker run worker list enqueue job job list job show job logs job wait job watch
        job retry job cancel job discard job run-now job reschedule queue queue list queue show queue pause queue resume
        queue set queue purge stats top db db migrate db status db sql db prune check config config show health bench
        explain completion"""
    found = " ".join(ALL)
    assert found.split() == " ".join(wanted.split()).split()


@pytest.mark.parametrize("path", ALL)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_command_explains_itself_in_both_languages(terminal: Terminal, path: str, lang: str) -> None:
    shown = terminal.run(*path.split(), "--help", DIBS_LANG=lang).out
    assert bool(re.search(r"[一-鿿]", shown)) == (lang == "zh")


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_examples_that_begin_with_its_own_name(path: str) -> None:
    examples = [example for example in LEAVES[path].examples if example.startswith(f"dibs {path}")]
    assert examples or "completion" in path, path


@pytest.mark.parametrize("path", OURS)
def test_every_option_and_argument_of_a_command_has_a_text(path: str) -> None:
    bare = [item.name for item in OURS[path].params if not isinstance(item, (Option, Argument))]
    assert not bare


def test_every_reading_command_can_answer_in_json() -> None:
    missing = [path for path in READING if "--json" not in _options(LEAVES[path])]
    missing += [path for path in STREAMING if "--jsonl" not in _options(LEAVES[path])]
    assert not missing


def _options(command: click.Command) -> set[str]:
    return {name for item in command.params for name in item.opts}


def test_help_is_there_within_a_moment(terminal: Terminal) -> None:
    """One thread and no waiting: its processor time is its wall time, and other tests do not add to that."""
    terminal.run("--help")
    taken = [_processor_ms(terminal) for _ in range(7)]
    assert min(taken) <= HELP_MS, taken


def _processor_ms(terminal: Terminal) -> float:
    before = os.times()
    terminal.run("--help")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return round(used * 1000)


def test_help_loads_nothing_heavy(terminal: Terminal) -> None:
    program = "import sys; from dibs.cli.run import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=terminal.environment, cwd=terminal.folder, capture_output=True, text=True
    )
    loaded = [name for name in done.stderr.split() if name in HEAVY]
    assert not loaded


def test_the_version_is_that_of_the_package(terminal: Terminal) -> None:
    assert terminal.run("--version").out == f"dibs {__version__}\n"


def test_the_module_is_the_command(terminal: Terminal) -> None:
    program = [sys.executable, "-m", "dibs", "--version"]
    done = subprocess.run(program, env=terminal.environment, capture_output=True, text=True)
    assert done.stdout == f"dibs {__version__}\n"


def test_an_unknown_command_is_refused_with_the_nearest_name(terminal: Terminal) -> None:
    assert "Did you mean enqueue" in terminal.run("enqueu", code=2).err
    assert "Did you mean list" in terminal.run("job", "lst", code=2).err
    assert "--status" in terminal.run("job", "list", "--statsu", "dead", code=2).err


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_command_of_a_later_version_is_told_as_such(terminal: Terminal, lang: str) -> None:
    later = ("schedule list", "workflow", "serve", "worker quiet", "queue limit", "db doctor")
    for words in map(str.split, later):
        said = terminal.run(*words, code=2, DIBS_LANG=lang).err
        assert ("not in this version yet" if lang == "en" else "还不在这个版本中") in said


def test_a_language_dibs_does_not_speak_is_refused(terminal: Terminal) -> None:
    assert "'de' is none of en, zh" in terminal.run("--lang", "de", "stats", code=2).err
    assert "选项" in terminal.run("--lang", "zh_CN.UTF-8", "--help").out


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_mistake_in_the_usage_is_one_sentence_and_exit_code_two(terminal: Terminal, lang: str) -> None:
    for arguments in (
        ["job", "show"],
        ["job", "list", "--limit", "many"],
        ["job", "list", "--status", "lost"],
        ["job", "wait", "x", "--timeout", "soon"],
        ["enqueue", "x", "--priority"],
        ["job", "list", "--limit=1", "--json=yes"],
        ["enqueue", "x", "--at", "later"],
        ["enqueue", "x", "--at", "2027-01-01 09:00 Mars/Base"],
        ["stats", "too", "much"],
    ):
        said = terminal.run(*arguments, code=2, DIBS_LANG=lang)
        assert said.out == ""
        assert said.err.startswith("error: " if lang == "en" else "错误：")
        assert "--help" in said.err


def test_a_group_without_a_command_shows_its_help_as_an_error(terminal: Terminal) -> None:
    said = terminal.run("job", code=2)
    assert said.out == ""
    assert "reschedule" in said.err


@pytest.mark.parametrize(
    ("environment", "chinese"),
    [
        ({"DIBS_LANG": "zh"}, True),
        ({"DIBS_LANG": "zh_CN", "LC_ALL": "en_US.UTF-8"}, True),
        ({"DIBS_LANG": "en", "LANG": "zh_CN.UTF-8"}, False),
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "de_DE.UTF-8"}, False),
    ],
)
def test_the_language_is_that_of_the_user(terminal: Terminal, environment: dict[str, str], chinese: bool) -> None:
    assert ("命令" in terminal.run("--help", **environment).out) == chinese


def test_the_language_can_be_configured_and_chosen_once(terminal: Terminal) -> None:
    terminal.write("dibs.toml", 'lang = "zh"\n')
    assert "命令" in terminal.run("--help").out
    assert "Commands" in terminal.run("--lang", "en", "--help").out
    terminal.write("dibs.toml", "lang = [broken\n")
    assert "Commands" in terminal.run("--help").out


def test_a_terminal_that_knows_no_chinese_still_gets_an_answer(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP)
    foreign = {"PYTHONIOENCODING": "latin-1", "DIBS_URL": "sqlite:///a.db"}
    made = terminal.run("enqueue", "greet", "name=世界", "--json", **foreign)
    assert made.json["created"]
    shown = terminal.run("job", "show", made.json["id"], **foreign)
    assert "\\u4e16\\u754c" in shown.out
    assert terminal.run("job", "list", "--json", **foreign).json["jobs"][0]["payload"] == {"name": "世界"}


def test_a_reader_that_has_seen_enough_is_no_error(terminal: Terminal) -> None:
    program = f"{COMMAND} db sql --url postgresql:// | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", program], env=terminal.environment, cwd=terminal.folder, capture_output=True, text=True
    )
    assert done.stdout.split() == ["begin;", "0"]
    assert done.stderr == ""


def test_debug_adds_the_traceback_and_only_debug(terminal: Terminal) -> None:
    assert "Traceback" in terminal.run("job", "list", "--debug", "--url", "foo://x", code=2).err
    assert "Traceback" in terminal.run("--debug", "job", "list", "--url", "foo://x", code=2).err
    terminal.run("job", "list", "--url", "foo://x", code=2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_completion_script(terminal: Terminal, shell: str) -> None:
    assert "_DIBS_COMPLETE" in terminal.run("completion", shell).out


def test_a_shell_completes_commands_queues_and_tasks(terminal: Terminal) -> None:
    terminal.write("jobs.py", SHOP)
    terminal.environment["DIBS_URL"] = "sqlite:///a.db"
    terminal.run("enqueue", "greet", "name=x")

    def completed(*words: str) -> list[str]:
        given = {"_DIBS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        return [line.partition(",")[2] for line in terminal.run(**given).lines]

    assert completed("dibs", "enq") == ["enqueue"]
    assert completed("dibs", "queue", "pause", "m") == ["mail"]
    assert completed("dibs", "enqueue", "g") == ["greet"]
    assert completed("dibs", "job", "list", "--status", "de") == ["dead"]


def test_completion_says_nothing_when_there_is_no_database(terminal: Terminal) -> None:
    given = {"_DIBS_COMPLETE": "bash_complete", "COMP_WORDS": "dibs queue show m", "COMP_CWORD": "3"}
    said = terminal.run(**given)
    assert (said.out.strip(), said.err) == ("", "")
    assert not list(terminal.folder.iterdir())
