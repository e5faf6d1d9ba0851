"""A handler may ask for the claimed job itself, beside its arguments or instead of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dibs.errors import InvalidPayload
from dibs.model.job import Job
from dibs.model.json_text import decode
from dibs.task.signature import Signature
from tests.unit.fakes import a_job, trip

LIMIT = 10_000


def _annotated(first: int, claimed: Job, last: int = 2) -> tuple[Any, ...]:
    return first, claimed.token, last


def _named(job, value: int = 3):  # type: ignore[no-untyped-def]
    return job.token, value


def _bare(value, other=2):  # type: ignore[no-untyped-def]
    return value, other


def _keyword(value: int, *, job: Job) -> tuple[Any, ...]:
    return job.token, value


def _no_job(job: str) -> str:
    return job


@pytest.mark.parametrize(
    ("function", "kwargs", "expected"),
    [
        (_annotated, {"first": 1}, (1, 7, 2)),
        (_named, {}, (7, 3)),
        (_keyword, {"value": 1}, (7, 1)),
        (_bare, {"value": 1}, (1, 2)),
        (_no_job, {"job": "carpenter"}, "carpenter"),
    ],
)
def test_a_handler_gets_its_job_where_it_asks_for_one(function: Any, kwargs: Any, expected: Any) -> None:
    assert trip(function, **kwargs) == expected


def test_the_place_of_the_job_is_not_counted_among_the_arguments() -> None:
    assert trip(_annotated, 1, 5) == (1, 7, 5)
    with pytest.raises(InvalidPayload, match="'claimed' of task 'work' is unknown"):
        Signature(_annotated, "work").payload((1,), {"claimed": 5}, LIMIT)


@pytest.mark.parametrize("payload", ["{}", "[1,2]", "null", '"text"', '{"a":1}'])
def test_a_handler_of_the_job_alone_takes_any_payload(payload: str) -> None:
    def handle(job: Job) -> Any:
        return job.payload

    assert Signature(handle, "work").call(handle, a_job(payload=payload)) == decode(payload)


def test_a_handler_of_the_job_alone_may_be_enqueued_with_any_names() -> None:
    def handle(job: Job) -> Any:
        return job.payload

    assert trip(handle, a=1, b=["x"]) == {"a": 1, "b": ["x"]}


@pytest.mark.parametrize("value", [math.nan, 2**60, "\x00", []])
def test_a_handler_of_the_job_alone_is_stored_no_dirtier_than_others(value: Any) -> None:
    def only(job: Job) -> None: ...

    nested: Any = value
    for _ in range(100 if isinstance(value, list) else 0):
        nested = [nested]
    with pytest.raises(InvalidPayload):
        Signature(only, "only").payload((), {"x": nested}, LIMIT)
