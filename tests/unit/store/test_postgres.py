"""PostgreSQL's URLs and errors in dibs' words, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dibs.errors import (
    Conflict,
    DatabaseMissing,
    DatabaseUnreachable,
    DibsError,
    InvalidURL,
    NoRights,
    SchemaOutdated,
)
from dibs.store.postgres import PostgresDatabase, dialect, explain


class Refused(Exception):
    """An error of a driver: `sqlstate` as psycopg and asyncpg say it, `pgcode` as others do."""

    def __init__(self, state: str | None, text: str = "no", **more: Any) -> None:
        super().__init__(text)
        self.sqlstate = state
        self.__dict__.update(more)


class OperationalError(Exception):
    """What a driver raises that never reached the server."""


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (Refused("42P01", 'relation "dibs.job" does not exist'), SchemaOutdated, "lacks tables"),
        (Refused("3F000", 'schema "dibs" does not exist'), SchemaOutdated, "lacks tables"),
        (Refused("42703", 'column "x" of dibs.job'), SchemaOutdated, "lacks tables"),
        (Refused("23505", 'violates "job_unique"'), Conflict, "has this id or unique key"),
        (Refused("3D000", 'database "x" does not exist'), DatabaseMissing, 'database "x" does not exist'),
        (OperationalError('FATAL:  database "a b" does not exist'), DatabaseMissing, "does not exist"),
        (Refused("28P01", "password wrong"), DatabaseUnreachable, "refused the login"),
        (Refused("28000", "role unknown"), DatabaseUnreachable, "refused the login"),
        (Refused("42501", "permission denied for schema x"), NoRights, "permission denied"),
        (Refused("25006", "read-only"), DatabaseUnreachable, "standby"),
        (OperationalError("connection refused"), DatabaseUnreachable, "cannot be reached: connection refused"),
        (Refused("08006", "gone"), DatabaseUnreachable, "connection to PostgreSQL ended"),
        (Refused("57P01", "terminating"), DatabaseUnreachable, "ended: terminating"),
        (Refused("53300", "too many clients"), DatabaseUnreachable, "too many clients"),
    ],
    ids=lambda value: getattr(value, "sqlstate", ""),
)
def test_an_error_of_the_server_is_said_in_our_words(error: Exception, kind: type[DibsError], words: str) -> None:
    explained = explain(error)
    assert type(explained) is kind
    assert words in explained.cause


@pytest.mark.parametrize(
    "error",
    [
        Refused("42P01", 'relation "users" does not exist'),
        Refused("23505", 'violates "users_email"'),
        Refused("22P02", "invalid input"),
        Refused("57014", "statement timeout"),
        Refused("40001", "serialization"),
        ValueError("nothing of the database's"),
    ],
    ids=str,
)
def test_an_error_that_is_not_ours_is_left_to_its_owner(error: Exception) -> None:
    assert explain(error) is None


def test_an_error_is_known_through_the_wrapping_of_another_library() -> None:
    inner = SimpleNamespace(pgcode="42501", diag=SimpleNamespace(message_primary="permission denied"))
    explained = explain(Refused(None, "a long excerpt of the statement", orig=inner))
    assert type(explained) is NoRights
    assert explained.cause == "permission denied."


def test_the_words_of_the_server_are_put_on_one_line_and_cut() -> None:
    explained = explain(Refused("08006", "gone\n  for\tgood. " + "x" * 999 + "."))
    assert explained is not None
    assert explained.cause.startswith("The connection to PostgreSQL ended: gone for good. xxx")
    assert len(explained.cause) < 600


@pytest.mark.parametrize(
    ("state", "again"),
    [("40P01", True), ("40001", True), ("55P03", True), ("08006", False), (None, False)],
)
def test_only_what_was_rolled_back_whole_is_played_again(state: str | None, again: bool) -> None:
    assert dialect().replayable(Refused(state)) is again


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host:5433/app", "postgresql://user@host:5433/app"),
        ("postgres://user:secret@host/app?password=secret", "postgresql://user@host/app"),
        ("postgresql://host/app", "postgresql://host/app"),
        ("postgresql:///app?host=/tmp", "postgresql:///app"),
    ],
)
def test_a_url_is_never_shown_with_its_password(url: str, shown: str) -> None:
    assert PostgresDatabase(url).shown_url == shown


def test_a_pooler_is_ours_to_know_and_nothing_else_of_the_url_is_changed() -> None:
    url = "postgresql://u:p%40ss@host/app?sslmode=require&pooler=transaction&options=-c%20a%3Db"
    database = PostgresDatabase(url)
    assert (database.pooler, database.audible) == ("transaction", False)
    assert database._url == "postgresql://u:p%40ss@host/app?sslmode=require&options=-c%20a%3Db"
    assert PostgresDatabase("postgres://host/app")._url == "postgresql://host/app"
    with pytest.raises(InvalidURL, match="pooler='session'"):
        PostgresDatabase("postgresql://host/app?pooler=session")


def test_what_the_url_says_of_the_connection_beats_our_defaults() -> None:
    plain = PostgresDatabase("postgresql://host/app")._extra
    told = PostgresDatabase("postgresql://host/app?connect_timeout=2&target_session_attrs=any")._extra
    assert plain["connect_timeout"] == "10"
    assert plain["target_session_attrs"] == "read-write"
    assert plain.keys() - told.keys() == {"connect_timeout", "target_session_attrs"}
