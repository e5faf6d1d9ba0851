"""Errors of MySQL and MariaDB in dibs' words, their values and their migrations, without a server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import (
    Conflict,
    DatabaseError,
    DatabaseMissing,
    DatabaseUnreachable,
    DibsError,
    NoRights,
    SchemaOutdated,
)
from dibs.store import mysql
from dibs.store.migrate import steps
from dibs.store.mysql_errors import code, explain, refuses, replayable
from dibs.store.mysql_migrator import MYSQL_BOOK, statements
from dibs.store.mysql_url import arguments, places
from dibs.store.script import script
from dibs.store.server_url import take_apart
from dibs.store.sessions.mysql import _literal
from dibs.store.statement import load
from tests.unit.fakes import reproducible


class Error(Exception):
    """How the errors of all four drivers begin: with a number and the server's words."""


@pytest.mark.parametrize(
    ("number", "text", "kind", "words"),
    [
        (1146, "Table 'app.dibs_job' doesn't exist", SchemaOutdated, "lacks tables"),
        (1054, "Unknown column 'x' in 'field list'", SchemaOutdated, "lacks tables"),
        (1062, "Duplicate entry 'a' for key 'dibs_job.dibs_job_unique'", Conflict, "has this id or unique key"),
        (1062, "Duplicate entry 'a' for key 'PRIMARY'", Conflict, "has this id or unique key"),
        (1049, "Unknown database 'app'", DatabaseMissing, "Unknown database 'app'"),
        (1045, "Access denied for user 'x'", DatabaseUnreachable, "refused the login"),
        (1698, "Access denied for user 'x'", DatabaseUnreachable, "refused the login"),
        (1142, "INSERT command denied", NoRights, "denied"),
        (1044, "Access denied for user 'x' to database 'y'", NoRights, "Access denied"),
        (1290, "The MySQL server is running with the --read-only option", DatabaseUnreachable, "replica"),
        (1836, "Running in read-only mode", DatabaseUnreachable, "replica"),
        (2003, "Can't connect to MySQL server on 'h'", DatabaseUnreachable, "cannot be reached"),
        (2013, "Lost connection to MySQL server during query", DatabaseUnreachable, "Lost connection"),
        (4031, "The client was disconnected by the server because of inactivity", DatabaseUnreachable, "inactivity"),
        (1040, "Too many connections", DatabaseUnreachable, "Too many connections"),
        (1114, "The table 'dibs_job' is full", DatabaseUnreachable, "cannot work"),
        (1180, 'Got error 28 "No space left on device" during COMMIT', DatabaseUnreachable, "cannot work"),
        (1047, "WSREP has not yet prepared node for application use", DatabaseUnreachable, "working cluster"),
        (1180, "Error (provider status: Not connected to Primary Component)", DatabaseUnreachable, "working cluster"),
        (1205, "Lock wait timeout exceeded", DatabaseError, "is still there"),
        (1213, "Deadlock found", DatabaseError, "this whole transaction"),
        (1020, "Record has changed since last read", DatabaseError, "snapshot"),
        (1153, "Got a packet bigger than 'max_allowed_packet' bytes", DatabaseError, "packet"),
    ],
)
def test_a_number_of_the_server_is_said_in_our_words(number: int, text: str, kind: type[DibsError], words: str) -> None:
    explained = explain(Error(number, text))
    assert type(explained) is kind
    assert words in explained.cause
    assert explained.remedy
    assert type(explain(SimpleError(Error(number, text)))) is kind


class SimpleError(Exception):
    """As SQLAlchemy wraps them."""

    def __init__(self, orig: Exception) -> None:
        super().__init__("a long excerpt of the statement")
        self.orig = orig


@pytest.mark.parametrize(
    "error",
    [
        Error(1146, "Table 'app.users' doesn't exist"),
        Error(1062, "Duplicate entry 'a' for key 'users.email'"),
        Error(1290, "The MySQL server is running with the --secure-file-priv option"),
        Error(1064, "You have an error in your SQL syntax"),
        ValueError(1146, "dibs_job"),
        OSError(111, "Connection refused"),
        Error(),
    ],
    ids=repr,
)
def test_a_number_that_is_not_ours_is_left_to_its_owner(error: Exception) -> None:
    assert explain(error) is None


def test_what_is_played_again_and_what_is_refused_for_good() -> None:
    assert [number for number in (1020, 1062, 1205, 1213, 1146, 2013) if replayable(Error(number, ""))] == [
        *(1020, 1062, 1205, 1213)
    ]
    assert refuses(Error(1406, "Data too long for column 'task'"))
    assert not refuses(Error(1205, "Lock wait timeout"))
    assert code(ValueError(7)) is None


@reproducible
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_a_text_in_quotes_ends_where_it_ends(text: str) -> None:
    written = _literal(text)
    assert (written[0], written[-1]) == ("'", "'")
    read, at = "", 1
    while at < len(written) - 1:
        at += written[at] == "\\"
        assert written[at] != "'" or written[at - 1] == "\\"
        read += written[at]
        at += 1
    assert read == text


def test_numbers_and_nothing_are_written_as_sql() -> None:
    assert [_literal(value) for value in (None, 7, -1, 2**53, True)] == ["null", "7", "-1", str(2**53), "True"]


def test_a_batch_is_written_in_the_order_of_its_ids() -> None:
    """Two batches never wait for each other crosswise."""
    made = mysql.dialect()
    assert made.array(["b", "a"]) == '["a","b"]'
    assert made.columns("batch", ids=["b", "a"], tokens=[1, None]) == {"batch": '[["a",null],["b",1]]'}


def test_the_blocks_of_mariadb_are_those_of_mysql() -> None:
    ours, others = load("mysql", "clock()"), load("mariadb", "clock()")
    assert {name: block.text for name, block in ours.items()} == {name: block.text for name, block in others.items()}


def test_what_mysql_has_in_versioned_comments_mariadb_has_without() -> None:
    for ours, theirs in zip(steps("mysql"), steps("mariadb"), strict=True):
        assert "/*!80013 default" in ours.text
        assert "/*!" not in theirs.text
        assert theirs.text == ours.text.replace("/*!80013 ", "").replace(" */", "")


def test_a_step_of_mysql_is_cut_where_a_line_ends_with_a_semicolon() -> None:
    text = "-- why; not a statement\ncreate table a (b text);\n\n-- more\ninsert into a values (';x');  \n-- the end\n"
    assert [part.splitlines()[-1] for part in statements(text)] == [
        "create table a (b text)",
        "insert into a values (';x')",
    ]


@pytest.mark.parametrize("dialect", ["mysql", "mariadb"])
def test_a_printed_script_of_mysql_has_every_statement_and_its_entry(dialect: str) -> None:
    [step] = steps(dialect)
    parts = list(statements(script(dialect)))
    assert len(parts) == len(MYSQL_BOOK) + len(list(statements(step.text))) + 1
    assert step.checksum in parts[-1]
    assert "begin" not in script(dialect).split()
    assert list(statements(script(dialect, after=1))) == list(MYSQL_BOOK)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("mysql://h/db", [{"host": "h", "port": 3306}]),
        ("mysql://u:p@[::1]:3307/db", [{"host": "::1", "port": 3307}]),
        ("mysql://a:1,b/db", [{"host": "a", "port": 1}, {"host": "b", "port": 3306}]),
        ("mysql:///db", [{"host": "127.0.0.1", "port": 3306}]),
        ("mysql://h/db?unix_socket=%2Frun%2Fmy%20sql.sock", [{"unix_socket": "/run/my sql.sock"}]),
    ],
)
def test_the_places_of_a_url_are_tried_in_order(url: str, found: list[dict[str, object]]) -> None:
    assert list(places(take_apart(url))) == found


def test_a_url_of_mysql_tells_the_driver_everything() -> None:
    made = arguments(take_apart("mysql://us%40er:p%3Aé@h/my%2Fdb?read_timeout=2.5&charset=utf8mb4"))
    assert (made["user"], made["password"], made["database"]) == ("us@er", "p:é".encode(), "my/db")
    assert (made["connect_timeout"], made["read_timeout"], made["write_timeout"]) == (10, 2.5, 60)
    assert made["charset"] == "utf8mb4"
    assert "ssl" not in made
    assert arguments(take_apart("mysql://h/db?ssl_mode=disabled"))["ssl_disabled"] is True
    assert arguments(take_apart("mysql:///db?unix_socket=x"))["ssl_disabled"] is True


def test_an_error_that_was_wrapped_is_known_by_its_number() -> None:
    assert code(SimpleNamespace(orig=Error(1213, "x"), args=())) == 1213  # type: ignore[arg-type]
