"""Where a setting comes from: what is given, else the environment, else a file, else the default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dibs.door.settings import DEFAULTS, Setting, find, payload_limit, toml_table
from dibs.errors import InvalidOption


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, and an environment that says nothing of dibs."""
    for name in DEFAULTS:
        monkeypatch.delenv(f"DIBS_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", DEFAULTS)
def test_where_nothing_is_said_the_default_counts(name: str) -> None:
    assert find(name) == Setting(DEFAULTS[name], "default")


def test_each_place_is_beaten_by_the_one_before_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(folder, "pyproject.toml", "[tool.dibs]\nconcurrency = 1\n")
    assert find("concurrency") == Setting(1, "pyproject.toml")
    _write(folder, "dibs.toml", "concurrency = 2\n")
    assert find("concurrency") == Setting(2, "dibs.toml")
    monkeypatch.setenv("DIBS_CONCURRENCY", "3")
    assert find("concurrency") == Setting("3", "$DIBS_CONCURRENCY")
    assert find("concurrency", 0) == Setting(0, "argument")


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_URL", "")
    assert find("url").origin == "default"


def test_a_file_that_says_nothing_of_a_setting_leaves_it_to_the_default(folder: Path) -> None:
    _write(folder, "dibs.toml", "concurrency = 2\n")
    assert find("grace") == Setting("30s", "default")


@pytest.mark.parametrize(
    ("dibs", "pyproject", "expected"),
    [
        (None, None, ({}, "")),
        (None, "[project]\nname = 'a'\n", ({}, "")),
        (None, "[tool.other]\na = 1\n", ({}, "")),
        (None, "[tool.dibs]\n", ({}, "")),
        (None, "[tool.dibs]\nurl = 'x'\n", ({"url": "x"}, "pyproject.toml")),
        ("", "[tool.dibs]\nurl = 'x'\n", ({"url": "x"}, "pyproject.toml")),
        ("url = 'y'\n", "[tool.dibs]\nurl = 'x'\n", ({"url": "y"}, "dibs.toml")),
        ("url = 'ключ'\n", None, ({"url": "ключ"}, "dibs.toml")),
    ],
)
def test_the_first_file_that_speaks_of_dibs_is_read(
    folder: Path, dibs: str | None, pyproject: str | None, expected: Any
) -> None:
    for name, text in (("dibs.toml", dibs), ("pyproject.toml", pyproject)):
        if text is not None:
            _write(folder, name, text)
    assert toml_table(folder) == expected


def test_another_folder_can_be_asked(folder: Path) -> None:
    (folder / "inner").mkdir()
    _write(folder / "inner", "dibs.toml", "url = 'inner'\n")
    assert find("url", folder=folder / "inner") == Setting("inner", "dibs.toml")
    assert find("url").origin == "default"


@pytest.mark.parametrize("content", [b"url = ", b"url = 'a'\nurl = 'b'\n", b"\xff\xfe"], ids=repr)
def test_a_file_that_cannot_be_read_is_named(folder: Path, content: bytes) -> None:
    (folder / "dibs.toml").write_bytes(content)
    with pytest.raises(InvalidOption, match=r"dibs\.toml cannot be read"):
        find("url")


def test_a_broken_file_is_not_even_opened_if_the_answer_is_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(folder, "dibs.toml", "url = ")
    monkeypatch.setenv("DIBS_URL", "x")
    assert find("url").value == "x"
    assert find("grace", "1s").value == "1s"


@pytest.mark.parametrize(("given", "limit"), [(1, 1), (5_000_000, 5_000_000), ("12", 12), (None, 1_000_000)])
def test_a_payload_limit_is_a_whole_number_of_bytes(given: Any, limit: int) -> None:
    assert payload_limit(given) == limit


def test_a_payload_limit_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_PAYLOAD_LIMIT", "2048")
    assert payload_limit() == 2_048


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1_000", "1e6", " 7", "many", "0x10"])
def test_an_impossible_payload_limit_is_refused_with_its_origin(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_PAYLOAD_LIMIT", text)
    if not text:
        assert payload_limit() == 1_000_000
        return
    with pytest.raises(InvalidOption, match=r"\(\$DIBS_PAYLOAD_LIMIT\) must be a whole number"):
        payload_limit()
