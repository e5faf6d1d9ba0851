"""`dibs explain`: every code that an error names leads to its cause, its remedy and its meaning, offline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dibs.cli.explain import exits, text
from tests.surface.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """An empty folder."""
    return Terminal(tmp_path)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_code_is_explained_in_both_languages(terminal: Terminal, lang: str) -> None:
    said = terminal.run("explain", "no-worker", DIBS_LANG=lang).out
    for part in ("cause", "remedy", "meaning"):
        assert text("no-worker", part, lang) in said


def test_the_line_below_an_error_is_a_command_that_explains_it(terminal: Terminal) -> None:
    command = terminal.run("queue", "list", code=5).err.splitlines()[-1].partition("] ")[2]
    assert command.split()[:2] == ["dibs", "explain"]
    assert "SQLite" in terminal.run(*command.split()[1:]).out


def test_values_have_their_names_where_they_will_stand(terminal: Terminal) -> None:
    explained = terminal.run("explain", "app-broken", "--json").json
    assert explained["cause"] == "Module {module} fails while it is imported: {error} (at {place})."
    assert explained["exit_code"] == 3
    assert "jobs.register({...})" in terminal.run("explain", "unknown-task").out


def test_an_unknown_code_is_refused_with_the_nearest_names(terminal: Terminal) -> None:
    assert "no-worker" in terminal.run("explain", "no-wrker", code=3).err


def test_without_a_code_all_are_listed(terminal: Terminal) -> None:
    assert set(re.findall(r"^[a-z-]+(?=  )", terminal.run("explain").out, re.MULTILINE)) == set(exits())
    assert [item["code"] for item in terminal.run("explain", "--json").json["codes"]] == list(exits())


def test_a_list_at_a_screen_keeps_one_line_for_each_code(terminal: Terminal) -> None:
    lines = terminal.at_screen("explain", COLUMNS="80", NO_COLOR="1").out.splitlines()
    assert all(len(line) <= 80 for line in lines)
