"""Fixtures of the worker's tests: jobs on SQLite, where nothing depends on the database, or on each kind of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dibs import Dibs
from tests.conftest import MYSQL
from tests.support.databases import Database

ROOT = Path(__file__).resolve().parents[2]
Launch = Callable[..., subprocess.Popen[bytes]]
EACH = ("sqlite", "postgres18", *MYSQL)


@pytest.fixture
def jobs(sqlite: Database, dibs_on: Callable[..., Dibs]) -> Dibs:
    """Jobs in a SQLite file."""
    return dibs_on(sqlite.url)


@pytest.fixture(params=EACH)
def place(request: pytest.FixtureRequest, open_database: Callable[[str], Any]) -> Any:
    """A database of each kind."""
    return open_database(request.param)


@pytest.fixture
def each(place: Database, dibs_on: Callable[..., Dibs]) -> Dibs:
    """Jobs in a database of each kind."""
    return dibs_on(place.url)


@pytest.fixture
def launch(sqlite: Database, tmp_path: Path) -> Iterator[Launch]:
    """Starts a worker in a process of its own on the test's SQLite file, killed at the end if it still runs."""
    started: list[subprocess.Popen[bytes]] = []

    def run(kind: str, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.worker.application", sqlite.url, kind, json.dumps(options)]
        with (tmp_path / f"worker-{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()
