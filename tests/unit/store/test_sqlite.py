"""SQLite's URLs and errors in dibs' words."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from dibs.errors import DatabaseError, DatabaseUnreachable, DibsError, InvalidURL, SchemaOutdated
from dibs.store.sqlite import _path, dialect, explain


def _error(text: str, code: int = sqlite3.SQLITE_ERROR) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_url_without_a_file_is_a_database_in_memory(url: str) -> None:
    assert _path(url) is None


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///jobs.db", "{here}/jobs.db"),
        ("sqlite:///data/jobs.db", "{here}/data/jobs.db"),
        ("sqlite:////var/jobs.db", "/var/jobs.db"),
        ("sqlite:///my%20jobs.db", "{here}/my jobs.db"),
        ("sqlite:///~/jobs.db", "{home}/jobs.db"),
        ("sqlite:///what%3F%23.db", "{here}/what?#.db"),
    ],
)
def test_three_slashes_are_a_file_here_and_four_one_from_the_root(
    url: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/of-somebody")
    assert str(_path(url)) == file.format(here=tmp_path, home="/home/of-somebody")


def test_two_slashes_are_a_host_and_refused() -> None:
    with pytest.raises(InvalidURL, match="names a host"):
        _path("sqlite://jobs.db")


@pytest.mark.parametrize("url", ["sqlite:///jobs.db?mode=ro", "sqlite:///jobs#1.db", "sqlite://?cache=shared"])
def test_options_of_a_url_are_refused_and_not_dropped(url: str) -> None:
    with pytest.raises(InvalidURL, match="has no options"):
        _path(url)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("no such table: dibs_job", SchemaOutdated),
        ("no such column: options", SchemaOutdated),
        ("database is locked", DatabaseUnreachable),
        ("unable to open database file", DatabaseUnreachable),
        ("file is not a database", DatabaseError),
        ("database disk image is malformed", DatabaseError),
        ("database or disk is full", DatabaseUnreachable),
        ("disk I/O error", DatabaseUnreachable),
        ("attempt to write a readonly database", DatabaseUnreachable),
    ],
)
def test_an_error_of_the_file_is_said_in_our_words(text: str, kind: type[DibsError]) -> None:
    explained = explain(_error(text))
    assert type(explained) is kind
    assert explained.remedy


@pytest.mark.parametrize(
    "error",
    [_error("no such table: users"), _error("near syntax"), ValueError("database is locked"), KeyboardInterrupt()],
    ids=str,
)
def test_an_error_that_is_not_ours_is_left_to_its_owner(error: BaseException) -> None:
    assert explain(error) is None


def test_an_error_is_known_through_the_wrapping_of_another_library() -> None:
    wrapped = RuntimeError("wrapped")
    wrapped.orig = _error("database is locked")  # type: ignore[attr-defined]
    assert type(explain(wrapped)) is DatabaseUnreachable


@pytest.mark.parametrize(
    ("code", "again"),
    [
        (sqlite3.SQLITE_BUSY, False),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True),
        (sqlite3.SQLITE_BUSY_RECOVERY, True),
        (sqlite3.SQLITE_LOCKED, True),
    ],
)
def test_only_a_lock_that_was_not_waited_for_is_tried_again(code: int, again: bool) -> None:
    replayable = dialect().replayable
    assert replayable(_error("database is locked", code)) is again
    wrapped = RuntimeError("wrapped")
    wrapped.orig = _error("database is locked", code)  # type: ignore[attr-defined]
    assert replayable(wrapped) is again


def test_other_errors_are_not_tried_again() -> None:
    replayable = dialect().replayable
    assert not replayable(_error("disk I/O error", sqlite3.SQLITE_IOERR))
    assert not replayable(sqlite3.IntegrityError("locked"))
    assert not replayable(RuntimeError(SimpleNamespace()))
