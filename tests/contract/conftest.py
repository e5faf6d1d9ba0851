"""Fixtures of the contract: every database with every kind of caller's connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import DATABASES, MYSQL, POOLED, POSTGRES
from tests.support.callers import ON_POSTGRES, ON_SQLITE, ORDERS, Caller
from tests.support.databases import Database
from tests.support.mysql_callers import ON_MYSQL


def _pairs(name: str, kinds: tuple[Any, ...]) -> list[Any]:
    return [pytest.param((name, kind), id=f"{name}-{kind.__name__}") for kind in kinds]


POSTGRES_CALLERS = [pair for name in POSTGRES for pair in _pairs(name, ON_POSTGRES)]
THEIR_OWN = frozenset({"test_a_scoped_session_joins_its_own_transaction"})
"""They hand dibs' URL to another library, which does not know `pooler`. Callers of a pooler are in test_pooler.py."""
MYSQL_CALLERS = [pair for name in MYSQL for pair in _pairs(name, ON_MYSQL)]
CALLERS = [*_pairs("sqlite", ON_SQLITE), *POSTGRES_CALLERS, *MYSQL_CALLERS]


@pytest.fixture(params=CALLERS)
def caller(request: pytest.FixtureRequest, open_database: Callable[[str], Database]) -> Iterator[Caller]:
    """A caller with a transaction of its own and a table `orders` of its own, for each kind of connection."""
    name, kind = request.param
    database = open_database(name)
    database.query(ORDERS)
    made = kind(database)
    yield made
    made.rollback()
    made.close()
    database.query("drop table orders")


@pytest.fixture
def database(request: pytest.FixtureRequest, open_database: Callable[[str], Database]) -> Database:
    """The caller's database where a test has a caller, else each in turn."""
    if "caller" in request.fixturenames:
        return request.getfixturevalue("caller").database
    return open_database(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test without a caller is run once for each database."""
    if "database" in metafunc.fixturenames and "caller" not in metafunc.fixturenames:
        wanted = metafunc.config.getoption("--pooler") and metafunc.function.__name__ not in THEIR_OWN
        pooled = [POOLED] if wanted else []
        metafunc.parametrize("database", [*DATABASES, *pooled], indirect=True)
