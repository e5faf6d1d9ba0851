"""Which connections are recognised, and what is said about those that cannot be used."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg_pool
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, create_async_engine
from sqlalchemy.orm import Session, scoped_session

from dibs import Dibs
from dibs.errors import InvalidOption, WrongDatabase
from tests.conftest import Make
from tests.support.callers import Caller
from tests.support.databases import Database, Postgres


@pytest.fixture
def foreign(caller: Caller, open_database: Callable[[str], Database], dibs_on: Make) -> Dibs:
    """A Dibs in another kind of database than the caller's."""
    others = {"sqlite": "postgres18", "mysql97": "mariadb1011", "mariadb1011": "mysql97"}
    return dibs_on(open_database(others.get(caller.database.name, "sqlite")).url)


def test_a_connection_to_another_kind_of_database_is_refused_with_the_reason(caller: Caller, foreign: Dibs) -> None:
    with pytest.raises(WrongDatabase) as raised:
        caller.enqueue(foreign, "ship")
    assert foreign.store.dialect.title in raised.value.cause
    assert "cannot commit together" in raised.value.cause
    with pytest.raises(WrongDatabase, match="second Dibs"):
        caller.enqueue_many(foreign, [foreign.job("ship")])


def test_an_asynchronous_connection_is_refused_by_a_synchronous_call(dibs: Dibs, caller: Caller) -> None:
    if not caller.asynchronous:
        assert asyncio.run(dibs.aenqueue("ship", connection=caller.given)).created  # the other way round is fine
        return
    with pytest.raises(WrongDatabase, match="aenqueue"):
        dibs.enqueue("ship", connection=caller.given)
    with pytest.raises(WrongDatabase, match="aenqueue"):
        dibs.enqueue_many([dibs.job("ship")], connection=caller.given)


@pytest.mark.parametrize("given", [1.5, "postgresql://x", 7, [], dict], ids=repr)
def test_what_is_no_connection_is_refused_by_its_type(dibs: Dibs, given: Any) -> None:
    with pytest.raises(InvalidOption, match="no connection dibs knows"):
        dibs.enqueue("ship", connection=given)


def _elsewhere(postgres: Postgres, name: str) -> str:
    return f"{postgres.url.rpartition('/')[0]}/{name}"


def test_a_database_without_the_tables_is_called_the_wrong_one(postgres: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(_elsewhere(postgres, ""))  # which database that is, only the server knows
    with psycopg.connect(_elsewhere(postgres, "postgres")) as elsewhere:
        with pytest.raises(WrongDatabase, match="without dibs' tables") as raised:
            jobs.enqueue("ship", connection=elsewhere)
        assert jobs.url in raised.value.remedy


def test_another_database_is_refused_also_if_it_has_the_tables(postgres: Postgres, dibs_on: Make) -> None:
    name = f"other_{postgres.url.rpartition('/')[2]}"
    jobs, other = dibs_on(postgres.url), _elsewhere(postgres, name)
    postgres.query(f"create database {name}")
    try:
        dibs_on(other).migrate()
        engine = sqlalchemy.create_engine(_with_psycopg(other), poolclass=sqlalchemy.NullPool)
        for refused in (psycopg.connect(other), engine.connect()):
            with closing(refused), pytest.raises(WrongDatabase, match=f"to {name}, but the jobs are in {jobs.url}"):
                jobs.enqueue("ship", connection=refused)
        asyncio.run(_refused(jobs, other))
    finally:
        postgres.query(f"drop database {name} with (force)")


async def _refused(jobs: Dibs, url: str) -> None:
    engine = create_async_engine(_with_psycopg(url), poolclass=sqlalchemy.NullPool)
    for opened in (asyncpg.connect(url), psycopg.AsyncConnection.connect(url), engine.connect()):
        connection = await opened
        with pytest.raises(WrongDatabase, match="but the jobs are in"):
            await jobs.aenqueue("ship", connection=connection)
        await connection.close()


def _with_psycopg(url: str) -> str:
    return url.replace("postgresql:", "postgresql+psycopg:")


def test_another_file_is_refused_also_if_it_has_the_tables(sqlite: Database, dibs_on: Make, tmp_path: Path) -> None:
    jobs, other = dibs_on(sqlite.url), tmp_path / "other.db"
    Dibs(f"sqlite:///{other}").migrate()

    async def through_aiosqlite() -> None:
        async with aiosqlite.connect(other) as connection:
            await jobs.aenqueue("ship", connection=connection)

    with pytest.raises(WrongDatabase, match="but the jobs are in"):
        asyncio.run(through_aiosqlite())
    for place, shown in ((str(other), "other.db"), (":memory:", "a database in memory")):
        with closing(sqlite3.connect(place)) as elsewhere, pytest.raises(WrongDatabase, match=shown):
            jobs.enqueue("ship", connection=elsewhere)


def test_a_file_is_the_same_by_another_path(sqlite: Database, dibs_on: Make, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(sqlite.url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(link)) as connection:
        assert dibs_on(sqlite.url).enqueue("ship", connection=connection).created
        connection.commit()
    assert sqlite.count("job") == 1


def test_cursors_pools_and_subclasses_of_psycopg_are_recognised(postgres: Postgres, dibs_on: Make) -> None:
    class Traced(psycopg.Connection[Any]):
        pass

    jobs = dibs_on(postgres.url)
    with Traced.connect(postgres.url, row_factory=dict_row) as connection:
        assert jobs.enqueue("ship", connection=connection, unique="a").created
        with connection.cursor() as cursor:
            assert not jobs.enqueue("ship", connection=cursor, unique="a").created
    with psycopg_pool.ConnectionPool(postgres.url, min_size=1, open=True) as pool, pool.connection() as connection:
        assert not jobs.enqueue("ship", connection=connection, unique="a").created
    assert postgres.count("job") == 1


async def _async_kinds(jobs: Dibs, url: str) -> list[bool]:
    found = []
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        found.append((await jobs.aenqueue("ship", connection=connection, unique="a")).created)
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection, connection.cursor() as c:
        found.append((await jobs.aenqueue("ship", connection=c, unique="b")).created)
    engine = create_async_engine(url.replace(":", "+asyncpg:", 1), poolclass=sqlalchemy.NullPool)
    scoped = async_scoped_session(lambda: AsyncSession(engine), asyncio.current_task)
    found.append((await jobs.aenqueue("ship", connection=scoped, unique="c")).created)
    await scoped.commit()
    await scoped.remove()
    await engine.dispose()
    return found


def test_asynchronous_pools_cursors_and_scoped_sessions_are_recognised(postgres: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(postgres.url)
    assert asyncio.run(_async_kinds(jobs, postgres.url)) == [True, True, True]
    assert postgres.count("job") == 3


def test_a_scoped_session_joins_its_own_transaction(database: Database, dibs: Dibs) -> None:
    driver = {"sqlite": "pysqlite", "postgres": "psycopg"}.get(database.dialect, "pymysql")
    url = database.url.replace(":", f"+{driver}:", 1)
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    scoped = scoped_session(lambda: Session(engine))
    dibs.enqueue("ship", connection=scoped)
    assert database.count("job") == 0
    scoped.commit()
    scoped.remove()
    assert database.count("job") == 1


def _as_dict(cursor: Any, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def test_a_row_factory_of_the_callers_does_not_change_the_answer(sqlite: Database, dibs_on: Make) -> None:
    jobs = dibs_on(sqlite.url)
    path = sqlite.url.removeprefix("sqlite:///")

    async def through_aiosqlite() -> str:
        async with aiosqlite.connect(path) as connection:
            connection.row_factory = _as_dict  # type: ignore[assignment]
            handle = await jobs.aenqueue("ship", connection=connection, unique="a")
            await connection.commit()
            return handle.id

    first = asyncio.run(through_aiosqlite())
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = _as_dict
        assert jobs.enqueue("ship", connection=connection, unique="a").id == first
        assert jobs.enqueue("ship", connection=connection.cursor(), unique="a").id == first
