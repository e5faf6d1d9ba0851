"""Whatever can never work is refused with one clear error, and nothing is stored."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest

from dibs import Backoff, Dibs
from dibs.errors import (
    DatabaseError,
    DatabaseUnreachable,
    DibsError,
    DriverMissing,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidURL,
    PayloadTooLarge,
)
from tests.conftest import Make
from tests.support.databases import Database, Postgres


@dataclasses.dataclass
class Point:
    x: Any


class Pair(NamedTuple):
    x: Any


class Struct(msgspec.Struct):
    x: Any


class Model(pydantic.BaseModel):
    x: float


class Colour(Enum):
    RED = math.nan


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


WRONG_PAYLOADS: dict[str, Any] = {
    "an object": object(),
    "a class": Dibs,
    "a function": len,
    "a generator": (n for n in range(3)),
    "a complex number": 1j,
    "NaN": math.nan,
    "infinity, deep inside": {"a": [1, {"b": -math.inf}]},
    "NaN in a tuple": (1, math.nan),
    "NaN in a set": {math.nan},
    "a time without a zone": datetime(2026, 1, 1),
    "a time without a zone, deep inside": {"a": [Point(datetime(2026, 1, 1))]},
    "a time without a zone in a struct": Struct(datetime(2026, 1, 1)),
    "NaN in a dataclass": Point(math.nan),
    "NaN in a named tuple": Pair(math.nan),
    "NaN in a struct": Struct({"a": math.nan}),
    "NaN in a pydantic model": Model(x=math.nan),
    "NaN in an enum": Colour.RED,
    "NUL in a text": "a\x00b",
    "NUL in a key": {"a\x00": 1},
    "NUL in a dataclass": Point("\x00"),
    "a lone surrogate": "\ud800",
    "a lone surrogate in a key": {"\udfff": 1},
    "an integer past 2^53": 2**53 + 1,
    "a negative integer past 2^53": -(2**53) - 1,
    "an integer of 64 bits in a list": [2**63],
    "an integer of 5,000 digits": int("9" * 4_000) ** 2,
    "a huge integer as a key": {2**60: 1},
    "a huge integer in a dataclass": Point(2**60),
    "nesting of 65": _nested(65),
    "nesting of 100,000": _nested(100_000),
    "a circle": _circle(),
    "a key of another type": {(1, 2): 3},
    "half text": b"\xff".decode(errors="surrogateescape"),
}


@pytest.fixture(autouse=True)
def nothing_stored(database: Database) -> Iterator[None]:
    """After each of these tests every table of jobs is as empty as before."""
    yield
    assert [database.count(name) for name in ("job", "history", "attempt_error")] == [0, 0, 0]


def _refuse(error: type[DibsError], act: Callable[[], object]) -> DibsError:
    """The error of an act that must be refused; it says what is wrong and what to do."""
    with pytest.raises(error) as raised:
        act()
    assert raised.value.cause
    assert raised.value.cause.rstrip().endswith((".", "!", "?", ":")), raised.value.cause
    return raised.value


@pytest.mark.parametrize("kind", WRONG_PAYLOADS)
def test_a_payload_that_is_not_clean_json_is_refused(dibs: Dibs, kind: str) -> None:
    @dibs.task
    def send(payload): ...

    payload = WRONG_PAYLOADS[kind]
    for act in (
        lambda: dibs.enqueue("mail", payload),
        lambda: dibs.enqueue("mail", {"deep": [payload]}),
        lambda: dibs.job("mail", payload),
        lambda: send.enqueue(payload),
        lambda: send.job(payload),
    ):
        error = _refuse(InvalidPayload, act)
        assert len(str(error)) < 1_000


def test_a_place_is_named_where_a_payload_is_wrong(dibs: Dibs) -> None:
    error = _refuse(InvalidPayload, lambda: dibs.enqueue("mail", {"users": [{"age": 1}, {"age": math.nan}]}))
    assert "$.users[1].age" in error.cause


def test_a_payload_over_the_limit_is_refused_with_both_sizes(database: Database, dibs_on: Make) -> None:
    jobs = dibs_on(database.url)
    error = _refuse(PayloadTooLarge, lambda: jobs.enqueue("mail", {"x": "x" * 1_000_000}))
    assert "1,000,008" in error.cause
    assert "1,000,000" in error.cause
    _refuse(PayloadTooLarge, lambda: dibs_on(database.url, payload_limit=10).enqueue("mail", "x" * 9))
    assert len(jobs.job("mail", "x" * 999_998).payload) == 1_000_000


WRONG_NAMES = [
    "",
    " ",
    "a b",
    "mail\n",
    "é",
    "x" * 64,
    "a/b",
    "../x",
    "'; drop table job; --",
    "a%s",
    "‮x",
    None,
    7,
    b"a",
]


@pytest.mark.parametrize("name", WRONG_NAMES, ids=repr)
def test_a_name_outside_the_letters_is_refused(dibs: Dibs, name: Any) -> None:
    acts: list[Callable[[], object]] = [
        lambda: dibs.enqueue(name),
        lambda: dibs.pause(name),
        lambda: dibs.resume(name),
        lambda: dibs.configure(name, lease=5),
        lambda: dibs.enqueue("mail", tags=[name]),
        lambda: dibs.dequeue(queues=[name]),
        lambda: dibs.dequeue(tasks=[name]),
    ]
    if name is not None:  # which there means: not given
        acts += [lambda: dibs.enqueue("mail", queue=name), lambda: dibs.list(queue=name), lambda: dibs.list(task=name)]
        acts += [lambda: dibs.task(name=name)(len), lambda: dibs.register({name: len})]
    for act in acts:
        _refuse(InvalidName, act)


@pytest.mark.parametrize("name", ["a", "A-Z.a_z-09", "x" * 63, ".", "-", "0", "__proto__", "null", "NULL"])
def test_a_name_of_the_allowed_letters_is_kept(dibs: Dibs, name: str, database: Database) -> None:
    dibs.enqueue(name, queue=name, tags=[name])
    batch = dibs.enqueue_many([dibs.job(name, queue=name, unique=name)])
    assert [(job.task, job.queue) for job in dibs.dequeue(queues=[name], tasks=[name], limit=2)] == [(name, name)] * 2
    assert dibs.get(batch[0].id).unique_key == name
    database.query(f"delete from {database.table('job')}")


WRONG_OPTIONS: list[dict[str, Any]] = [
    {"when": 1},
    {"Queue": "a"},
    {"priority": 1.5},
    {"priority": "high"},
    {"priority": True},
    {"priority": 2**31},
    {"delay": -1},
    {"delay": "soon"},
    {"delay": "5"},
    {"delay": math.nan},
    {"delay": math.inf},
    {"delay": True},
    {"delay": timedelta(days=-1)},
    {"delay": "101y"},
    {"delay": 200 * 365 * 86_400},
    {"run_at": datetime(2030, 1, 1)},
    {"at": datetime(2030, 1, 1)},
    {"run_at": "2030-01-01T00:00:00"},
    {"run_at": "tomorrow"},
    {"run_at": 7},
    {"run_at": "9999-12-31T23:59:59Z"},
    {"run_at": "2030-01-01T00:00:00Z", "at": "2030-01-01T00:00:00Z"},
    {"run_at": "2030-01-01T00:00:00Z", "delay": 1},
    {"unique": ""},
    {"unique": "x" * 192},
    {"unique": "a\x00"},
    {"unique": "\ud800"},
    {"unique": 7},
    {"on_conflict": "ignore"},
    {"max_attempts": 0},
    {"max_attempts": 1_001},
    {"max_attempts": 2.0},
    {"max_attempts": True},
    {"timeout": -1},
    {"timeout": "forever"},
    {"backoff": "30s"},
    {"backoff": 30},
    {"tags": "one"},
    {"tags": ["x"] * 17},
    {"tags": 7},
]


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=str)
def test_an_unknown_option_or_impossible_value_is_refused(dibs: Dibs, options: dict[str, Any]) -> None:
    @dibs.task
    def send() -> None: ...

    _refuse(InvalidOption, lambda: dibs.enqueue("mail", **options))
    _refuse(InvalidOption, lambda: dibs.job("mail", **options))
    _refuse(InvalidOption, lambda: send.using(**options).enqueue())


WRONG_TASKS: list[dict[str, Any]] = [
    {"speed": 1},
    {"run_in": "cloud"},
    {"run_in": "loop"},
    {"timeout": "soon"},
    {"backoff": "30s"},
    {"max_crashes": 0},
    {"max_crashes": "x"},
    {"max_attempts": 0},
    {"priority": "high"},
]


@pytest.mark.parametrize("options", WRONG_TASKS, ids=str)
def test_a_task_with_an_impossible_option_is_refused(dibs: Dibs, options: dict[str, Any]) -> None:
    def send() -> None: ...

    _refuse(InvalidOption, lambda: dibs.task(**options)(send))
    assert len(dibs.tasks) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backoff.fixed(-1),
        lambda: Backoff.fixed("x"),
        lambda: Backoff.fixed(1, jitter=2),
        lambda: Backoff.fixed(1, jitter=math.nan),
        lambda: Backoff.polynomial(power=-1),
        lambda: Backoff.polynomial(power="x"),  # type: ignore[arg-type]
        lambda: Backoff.exponential(factor=101),
        lambda: Backoff.exponential(jitter="x"),  # type: ignore[arg-type]
        lambda: Backoff.exponential(cap="never"),
        lambda: Backoff.from_json({"shape": "wild"}),
    ],
)
def test_an_impossible_backoff_is_refused(make: Callable[[], Backoff]) -> None:
    _refuse(InvalidOption, make)


@pytest.mark.parametrize("given", [[1], ["mail"], [None], [{"task": "mail"}]])
def test_what_is_no_job_cannot_be_enqueued_with_many(dibs: Dibs, given: list[Any]) -> None:
    _refuse(InvalidInput, lambda: dibs.enqueue_many([dibs.job("mail"), *given]))


def test_text_for_people_may_hold_anything(dibs: Dibs) -> None:
    dibs.pause("mail", "a\x00b\ud800")
    assert dibs.queues()[0].pause_reason == "a\ufffdb?"
    for wrong in ("a\x00", "\ud800", "x" * 192, 7, ""):
        _refuse(InvalidOption, lambda wrong=wrong: dibs.dequeue(worker=wrong))  # type: ignore[misc]


WRONG_URLS = [
    "",
    "mail",
    "oracle://x",
    "http://x",
    "postgresql://h/db?pooler=statement",
    "sqlite://file.db",
    "sqlite://h/f",
]


@pytest.mark.parametrize("url", WRONG_URLS, ids=repr)
def test_a_url_that_names_no_database_is_refused(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    error = _refuse(InvalidURL, lambda: Dibs(url))
    assert "://" in error.remedy or "pooler" in error.remedy


@pytest.mark.parametrize("limit", [0, -1, "many", 1.5, True])
def test_an_impossible_payload_limit_is_refused(limit: Any) -> None:
    _refuse(InvalidOption, lambda: Dibs("sqlite://", payload_limit=limit))


def test_a_server_that_is_not_there_is_said_to_be_unreachable(dibs_on: Make) -> None:
    jobs = dibs_on("postgresql://user:secret@127.0.0.1:1/app?connect_timeout=2")
    for act in (lambda: jobs.enqueue("mail"), jobs.migrate, jobs.dequeue, jobs.check_schema):
        error = _refuse(DatabaseUnreachable, act)
        assert "secret" not in str(error)
    assert "secret" not in jobs.url
    assert "secret" not in repr(jobs)


def test_a_database_or_login_that_is_not_there_is_named(postgres: Postgres, dibs_on: Make) -> None:
    missing = dibs_on(postgres.url.rpartition("/")[0] + "/no_such_database")
    error = _refuse(DatabaseError, lambda: missing.enqueue("mail"))
    assert "no_such_database" in error.cause
    stranger = dibs_on(postgres.url.replace("postgres@", "no_such_user@"))
    assert "no_such_user" in _refuse(DatabaseError, lambda: stranger.enqueue("mail")).cause


def test_a_file_that_is_no_database_is_named(tmp_path: Path, dibs_on: Make) -> None:
    (tmp_path / "text.db").write_text("this is no database, but a letter to my aunt" * 30)
    _refuse(DatabaseError, lambda: dibs_on(f"sqlite:///{tmp_path / 'text.db'}").enqueue("mail"))
    _refuse(DatabaseError, lambda: dibs_on(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}").enqueue("mail"))
    _refuse(DatabaseError, lambda: dibs_on(f"sqlite:///{tmp_path}").enqueue("mail"))


def test_a_missing_driver_is_named_with_its_remedy(dibs_on: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = dibs_on("postgresql://localhost/app")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install" in _refuse(DriverMissing, lambda: jobs.enqueue("mail")).remedy
