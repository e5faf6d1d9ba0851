"""Making and changing dibs' tables: whole, once, one program at a time, and never behind anybody's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from dibs import Dibs
from dibs.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dibs.store import migrate
from dibs.store.migrate import Migration
from dibs.store.mysql_migrator import statements
from tests.conftest import DATABASES, MYSQL, POSTGRES, Make, server_url
from tests.support.mysql_database import Connection, arguments


@pytest.fixture(params=DATABASES)
def bare(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str, dibs_on: Make) -> Iterator[str]:
    """The URL of a database that dibs has never seen."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'bare.db'}"
        return
    url, name = server_url(request.param), f"bare_{worker_id}"
    if request.param in MYSQL:
        with Connection(**arguments(url)) as admin:
            admin.execute(f"create database {name}")
            yield url + name
            admin.execute(f"drop database {name}")
        return
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
        admin.execute(f"drop database {name} with (force)".encode())


def _connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    if url.startswith("postgresql"):
        return psycopg.connect(url, autocommit=True)
    return Connection(**arguments(url), autocommit=True)


def _query(url: str, text: str) -> list[tuple[Any, ...]]:
    with closing(_connect(url)) as connection:
        cursor = connection.execute(text)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


def _table(url: str, name: str = "migration") -> str:
    return f"dibs.{name}" if url.startswith("postgresql") else f"dibs_{name}"


def _tables(url: str) -> list[str]:
    """The names of all tables that may be dibs'."""
    if url.startswith("sqlite"):
        text = "select name from sqlite_master where type = 'table'"
    else:
        schema = "= database()" if url.startswith(("mysql", "mariadb")) else "in ('dibs', 'public')"
        text = f"select table_name from information_schema.tables where table_schema {schema}"
    return [row[0] for row in _query(url, text)]


def _steps() -> list[str]:
    return [step.name for step in migrate.steps("postgres")]


def test_a_migration_makes_everything_once(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    assert jobs.migrate() == _steps()
    assert jobs.migrate() == []
    assert dibs_on(bare).migrate() == []
    jobs.check_schema()
    assert jobs.enqueue("mail").created
    assert _query(bare, f"select version, name from {_table(bare)} order by version") == [
        (step.version, step.name) for step in migrate.steps(jobs.store.dialect.name)
    ]


def test_several_programs_may_migrate_at_once(bare: str, dibs_on: Make) -> None:
    start = Barrier(6)

    def migrate_together(jobs: Dibs) -> list[str]:
        start.wait()
        return jobs.migrate()

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(migrate_together, [dibs_on(bare) for _ in range(6)]))
    assert sorted(taken) == [[]] * 5 + [_steps()]


@pytest.mark.parametrize("bare", POSTGRES, indirect=True)
@pytest.mark.parametrize("level", ["repeatable\\ read", "serializable"])
def test_several_programs_may_migrate_at_any_default_isolation(bare: str, dibs_on: Make, level: str) -> None:
    start = Barrier(4)

    def migrate_together(jobs: Dibs) -> list[str]:
        start.wait()
        return jobs.migrate()

    made = [dibs_on(f"{bare}?options=-c default_transaction_isolation={level}") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(migrate_together, made)) == [[]] * 3 + [_steps()]


def test_an_embedded_database_makes_its_own_tables_others_never(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    if bare.startswith("sqlite"):
        assert jobs.enqueue("mail").status() == "ready"
        return
    for verb in (lambda: jobs.enqueue("mail"), jobs.dequeue, jobs.list, jobs.stats, jobs.check_schema):
        with pytest.raises(SchemaOutdated, match="dibs db migrate"):
            verb()
    assert _tables(bare) == []


@pytest.mark.parametrize("bare", ["sqlite", *POSTGRES], indirect=True)
def test_a_step_that_fails_leaves_nothing_behind(bare: str, dibs_on: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = dibs_on(bare)
    known = migrate.steps(jobs.store.dialect.name)
    broken = Migration(99, "broken", "create table left_behind (id integer);\nselect no_such_function();\n")
    monkeypatch.setattr(migrate, "steps", lambda _dialect: [*known, broken])
    with pytest.raises(Exception, match="no_such_function"):
        jobs.migrate()
    assert _tables(bare) == []
    monkeypatch.undo()
    assert jobs.migrate() == [step.name for step in known]


def test_a_new_step_is_taken_by_an_old_database(bare: str, dibs_on: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = dibs_on(bare)
    jobs.migrate()
    known = migrate.steps(jobs.store.dialect.name)
    monkeypatch.setattr(migrate, "steps", lambda _dialect: [*known, Migration(99, "later", "select 1;\n")])
    with pytest.raises(SchemaOutdated, match="99"):
        jobs.check_schema()
    assert [step.applied for step in jobs.schema()] == [True] * len(known) + [False]
    assert jobs.migrate() == ["later"]
    jobs.check_schema()


def test_a_step_of_a_newer_version_that_breaks_nothing_is_none_of_our_business(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    jobs.migrate()
    _query(bare, f"insert into {_table(bare)} (version, name, checksum, needs) values (9999, 'future', 'x', 1)")
    assert jobs.migrate() == []
    jobs.check_schema()
    handle = dibs_on(bare).enqueue("mail")
    assert [job.id for job in dibs_on(bare).dequeue()] == [handle.id]


def test_tables_that_only_a_newer_version_understands_are_refused(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    jobs.migrate()
    _query(bare, f"insert into {_table(bare)} (version, name, checksum, needs) values (9999, 'future', 'x', 9999)")
    for verb in (jobs.migrate, jobs.check_schema, jobs.schema):
        with pytest.raises(SchemaTooNew, match="9999"):
            verb()
    with pytest.raises(SchemaTooNew, match="Upgrade dibs"):
        dibs_on(bare).enqueue("mail")
    with pytest.raises(SchemaTooNew, match="Upgrade dibs"):
        dibs_on(bare).dequeue()


def test_a_step_that_was_applied_with_another_text_is_refused(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    jobs.migrate()
    _query(bare, f"update {_table(bare)} set checksum = 'another'")
    for verb in (jobs.migrate, jobs.check_schema):
        with pytest.raises(DatabaseError, match="another text"):
            verb()


def test_the_printed_script_makes_what_a_migration_makes(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    script = jobs.schema_script()
    with closing(_connect(bare)) as connection:
        if bare.startswith("sqlite"):
            connection.executescript(script)
        elif bare.startswith("postgresql"):
            connection.execute(script.encode())
        else:
            for statement in statements(script):
                connection.execute(statement)
    assert jobs.migrate() == []
    jobs.check_schema()
    jobs.ack(jobs.dequeue()[0] if jobs.enqueue("mail").created else None)


def test_a_lost_table_is_named_with_its_remedy(bare: str, dibs_on: Make) -> None:
    jobs = dibs_on(bare)
    jobs.migrate()
    _query(bare, f"drop view {_table(bare, 'jobs')}")
    _query(bare, f"drop table {_table(bare, 'job')}")
    with pytest.raises(SchemaOutdated, match="dibs db migrate"):
        jobs.enqueue("mail")


def test_many_first_users_of_one_file_do_not_trip_over_each_other(tmp_path: Path, dibs_on: Make) -> None:
    url, start = f"sqlite:///{tmp_path / 'new.db'}", Barrier(8)

    def first_use(n: int) -> str:
        jobs = dibs_on(url)
        start.wait()
        return jobs.enqueue("mail", {"n": n}).id

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(first_use, range(8)))
    assert {job.id for job in dibs_on(url).dequeue(limit=9)} == set(ids)
