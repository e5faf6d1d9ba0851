"""Fixtures of the contract: every database with every kind of caller's connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import POSTGRES
from tests.support.callers import ON_POSTGRES, ON_SQLITE, ORDERS, Caller
from tests.support.databases import Database

KINDS = [("sqlite", kind) for kind in ON_SQLITE] + [(name, kind) for name in POSTGRES for kind in ON_POSTGRES]


def _name(pair: tuple[str, Any]) -> str:
    return f"{pair[0]}-{pair[1].__name__}"


@pytest.fixture(params=[pytest.param(pair, id=_name(pair)) for pair in KINDS])
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
        metafunc.parametrize("database", ["sqlite", *POSTGRES], indirect=True)
