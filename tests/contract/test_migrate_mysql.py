"""Migrations where nothing can be undone: a step that was interrupted goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pymysql
import pytest

from dibs import Dibs
from dibs.errors import DatabaseError, SchemaOutdated
from dibs.store import migrate, mysql_migrator
from dibs.store.migrate import Migration
from dibs.store.mysql_migrator import statements
from tests.conftest import MYSQL, Make, server_url
from tests.support.mysql_database import Connection, arguments


class Killed(BaseException):
    """The end of a migrator's process."""


@pytest.fixture(params=MYSQL)
def bare(request: pytest.FixtureRequest, worker_id: str) -> Iterator[str]:
    """The URL of a database that dibs has never seen."""
    url, name = server_url(request.param), f"bare_{worker_id}"
    with Connection(**arguments(url)) as admin:
        admin.execute(f"create database {name}")
        yield url + name
        admin.execute(f"drop database {name}")


def _query(url: str, text: str) -> list[tuple[Any, ...]]:
    with closing(Connection(**arguments(url), autocommit=True)) as connection:
        return list(connection.execute(text).fetchall())


def _made(url: str) -> dict[str, str]:
    """How the server describes each table and view, without what differs between two that are the same."""
    names = [row[0] for row in _query(url, "show tables")]
    return {name: _query(url, f"show create table {name}")[0][1] for name in names}


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Kills the migrator when the server has carried out a number of statements."""

    def arm(number: int) -> None:
        sent = [0]

        def run(connection: Any, text: str, *values: Any) -> None:
            if sent[0] == number:
                raise Killed
            original(connection, text, *values)
            sent[0] += 1

        monkeypatch.setattr(mysql_migrator, "_run", run)

    original = mysql_migrator._run
    return arm


def test_a_migrator_that_is_killed_between_any_two_statements_is_resumed(
    bare: str, dibs_on: Make, kill: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dibs_on(bare)
    whole.migrate()
    expected = _made(bare)
    for number in count():
        _drop_all(bare, expected)
        kill(number)
        try:
            dibs_on(bare).migrate()
            break
        except Killed:
            monkeypatch.undo()
            assert dibs_on(bare).migrate() == ["core"]
        assert _made(bare) == expected, number
        assert _query(bare, "select count(*) from dibs_migration_begun") == [(0,)]
    assert number > 2 * len(list(statements(migrate.steps("mysql")[0].text)))


def _drop_all(url: str, made: dict[str, str]) -> None:
    with closing(Connection(**arguments(url), autocommit=True)) as connection:
        for name, text in made.items():
            connection.execute(f"drop {'view' if ' VIEW ' in text else 'table'} if exists {name}")


def test_each_of_many_kills_is_survived_by_one_migration(
    bare: str, dibs_on: Make, kill: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same step, interrupted again and again, a statement further each time."""
    kills = 0
    while True:
        kill(6)  # the lock's time-out, the book, its entry, a statement, and that it is done
        try:
            dibs_on(bare).migrate()
            break
        except Killed:
            kills += 1
            assert kills < 30
        finally:
            monkeypatch.undo()
    assert kills > 3
    dibs_on(bare).check_schema()


def test_a_step_that_fails_stops_there_and_goes_on_there(
    bare: str, dibs_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = dibs_on(bare)
    known = migrate.steps(jobs.store.dialect.name)
    broken = Migration(99, "broken", "create table done (id integer);\nselect no_such_function();\n")
    monkeypatch.setattr(migrate, "steps", lambda _dialect: [*known, broken])
    for _ in range(2):
        with pytest.raises(Exception, match="no_such_function"):
            jobs.migrate()
    assert _query(bare, "select version, done from dibs_migration_begun") == [(99, 1)]
    with pytest.raises(SchemaOutdated, match="99"):
        jobs.check_schema()
    changed = Migration(99, "broken", "create table done (id integer);\ncreate table other (id integer);\n")
    monkeypatch.setattr(migrate, "steps", lambda _dialect: [*known, changed])
    with pytest.raises(DatabaseError, match="begun with another text"):
        jobs.migrate()


def test_an_error_of_a_statement_that_was_never_sent_is_not_passed_over(
    bare: str, dibs_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = dibs_on(bare)
    known = migrate.steps(jobs.store.dialect.name)
    twice = Migration(99, "twice", "create table done (id integer);\ncreate table done (id integer);\n")
    monkeypatch.setattr(migrate, "steps", lambda _dialect: [*known, twice])
    with pytest.raises(pymysql.err.OperationalError, match="already exists"):
        jobs.migrate()


def test_tables_of_an_engine_without_transactions_are_refused(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    jobs.migrate()
    _query(bare, "alter table dibs_lane engine = myisam")
    for verb in (jobs.migrate, jobs.check_schema):
        with pytest.raises(DatabaseError, match="dibs_lane is kept by the engine MyISAM") as raised:
            verb()
        assert "alter table dibs_lane engine = innodb" in raised.value.remedy
    _query(bare, raised.value.remedy.removeprefix("Change it: "))
    jobs.check_schema()


def test_a_change_waits_for_those_who_use_the_table_for_a_short_time_only(
    bare: str, dibs_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits, all who come after it wait behind it."""
    jobs: Dibs = dibs_on(bare)
    jobs.migrate()
    known = migrate.steps(jobs.store.dialect.name)
    later = Migration(99, "later", "alter table dibs_lane add column more integer;\n")
    monkeypatch.setattr(migrate, "steps", lambda _dialect: [*known, later])
    monkeypatch.setattr(mysql_migrator, "TABLE_WAIT", 1)
    with closing(Connection(**arguments(bare))) as reader:
        reader.execute("select * from dibs_lane")
        with pytest.raises(DatabaseError, match=r"(?i)lock wait"):
            jobs.migrate()
        reader.rollback()
    assert jobs.migrate() == ["later"]
