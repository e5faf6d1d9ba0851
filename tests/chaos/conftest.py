"""Databases for chaos: the servers of this test run, so far as nobody crashes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.places import Place, Served, Sqlite, own_server
from tests.conftest import server_url

OpenPlace = Callable[[str, bool], Place]
"""`open_place(database, crashes)`."""


@pytest.fixture
def open_place(tmp_path: Path) -> Iterator[OpenPlace]:
    """Opens a place by the name of its database. Whoever crashes a server gets one of its own."""
    with ExitStack() as stack:

        def make(name: str, crashes: bool) -> Place:
            if name == "sqlite":
                return Sqlite(tmp_path)
            url = server_url(name)
            return stack.enter_context(own_server(name)) if crashes else Served(name, url)

        yield make
