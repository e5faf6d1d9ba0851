"""At a real screen: questions, colours, bars, and the live view."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.surface.terminal import SHOP, Terminal

ESCAPE = "\x1b["


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A folder with two waiting jobs."""
    terminal = Terminal(tmp_path, "sqlite:///jobs.db")
    terminal.write("jobs.py", SHOP)
    for name in ("Ada", "Ben"):
        terminal.run("enqueue", "greet", f"name={name}")
    return terminal


def _ready(terminal: Terminal) -> int:
    return len(terminal.run("job", "list", "--status", "ready", "--json").json["jobs"])


def test_a_question_is_asked_before_many_jobs_are_touched(terminal: Terminal) -> None:
    declined = terminal.at_screen("queue", "purge", "mail", keys=(("[y/N]", b"n\n"),))
    assert declined.code == 1
    assert "discard 2 jobs?" in declined.out
    assert "Nothing was done" in declined.out
    assert _ready(terminal) == 2
    agreed = terminal.at_screen("queue", "purge", "mail", keys=(("[y/N]", b"y\n"),))
    assert agreed.code == 0
    assert _ready(terminal) == 0


def test_a_question_can_be_interrupted_like_anything_else(terminal: Terminal) -> None:
    left = terminal.at_screen("queue", "purge", "mail", keys=(("[y/N]", b"\x03"),))
    assert left.code == 130
    assert _ready(terminal) == 2


def test_the_question_is_asked_in_chinese_too(terminal: Terminal) -> None:
    asked = terminal.at_screen("queue", "purge", "mail", keys=(("[y/N]", b"n\n"),), DIBS_LANG="zh")
    assert "对 2 个任务执行“作废”吗？" in asked.out


def test_colours_are_for_screens_and_obey_the_user(terminal: Terminal) -> None:
    assert ESCAPE in terminal.at_screen("job", "list").out
    assert ESCAPE not in terminal.at_screen("job", "list", NO_COLOR="1").out
    assert ESCAPE not in terminal.at_screen("job", "list", TERM="dumb").out
    assert ESCAPE not in terminal.run("job", "list").out
    assert ESCAPE in terminal.run("job", "list", FORCE_COLOR="1").out
    assert ESCAPE not in terminal.run("job", "list", FORCE_COLOR="1", NO_COLOR="1").out
    assert ESCAPE in terminal.at_screen("job", "show", "x").out


def test_what_a_program_reads_is_not_cut_to_a_width(terminal: Terminal) -> None:
    terminal.run("enqueue", "greet", "name=" + "long" * 100)
    listed = terminal.run("job", "list", COLUMNS="40").lines
    assert len(listed) == 4
    assert all(len(line.split()) >= 6 for line in listed)
    assert all(line == line.rstrip() for line in listed)


def test_the_live_view_shows_queues_and_ends_at_a_key(terminal: Terminal) -> None:
    shown = terminal.at_screen("top", "--every", "100ms", keys=(("quit", b" "), ("mail", b"q")))
    assert shown.code == 0
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.out)
    assert "2 ready" in plain
    assert "mail" in plain
    assert shown.out.rstrip().endswith(f"{ESCAPE}?1049l"), "the screen from before is back"


def test_the_live_view_can_be_interrupted(terminal: Terminal) -> None:
    assert terminal.at_screen("top", keys=(("quit", b"\x03"),)).code == 130


def test_the_live_view_needs_a_screen(terminal: Terminal) -> None:
    assert "[terminal-needed]" in terminal.run("top", code=1).err


def test_what_the_live_view_shows_can_be_read_by_a_program(terminal: Terminal) -> None:
    seen = terminal.run("top", "--json").json
    assert seen["url"].startswith("sqlite:")
    assert (seen["rate"], seen["workers"]) == (0.0, [])
    assert {queue["name"]: queue["jobs"]["ready"] for queue in seen["queues"]}["mail"] == 2


def test_a_bar_shows_on_a_screen_only(terminal: Terminal) -> None:
    seen = terminal.at_screen("bench", "--jobs", "100")
    assert seen.code == 0
    assert "Measuring" in seen.out
    assert terminal.run("bench", "--jobs", "100").err == ""
