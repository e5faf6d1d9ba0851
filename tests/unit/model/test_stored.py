"""Reading settings back: what another version or a person wrote never stops a worker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dibs.model import stored
from dibs.model.backoff import Backoff
from dibs.model.job import NO_SETTINGS, JobSettings
from dibs.model.json_text import encode
from dibs.model.settings import QueueSettings
from tests.unit.fakes import VALUES, reproducible

HUGE = "[" * 100_000


@pytest.mark.parametrize("text", [None, "", "null", "[1]", "7", '"text"', "no json", '{"a":', HUGE])
def test_what_is_no_object_has_no_members(text: str | None) -> None:
    assert stored.fields(text) == {}


def test_the_members_of_an_object_are_read_as_they_are() -> None:
    assert stored.fields('{"a":1,"b":null}') == {"a": 1, "b": None}


@pytest.mark.parametrize("value", [None, True, False, -1, "5", "1m", [5], {}, float("inf"), float("nan")], ids=repr)
def test_what_is_no_span_of_time_counts_as_not_given(value: Any) -> None:
    assert stored.span(value) is None


@pytest.mark.parametrize("value", [1, 0.5, 86_400])
def test_a_span_of_time_is_read_in_seconds(value: float) -> None:
    assert stored.span(value) == value


@pytest.mark.parametrize("value", [None, True, 0, -1, 1.0, "3", [3]], ids=repr)
def test_what_is_no_count_counts_as_not_given(value: Any) -> None:
    assert stored.count(value) is None


def test_a_count_is_a_whole_number_from_one_on() -> None:
    assert [stored.count(value) for value in (1, 1_000)] == [1, 1_000]


@pytest.mark.parametrize(
    "value",
    [None, "fixed", {}, {"shape": "of a later version"}, {"shape": "fixed", "unit": -5}, {"shape": []}],
    ids=repr,
)
def test_a_backoff_of_another_version_counts_as_not_given(value: Any) -> None:
    assert stored.backoff(value) is None


def test_a_backoff_of_this_version_is_read() -> None:
    assert stored.backoff(Backoff.fixed(5).as_json()) == Backoff.fixed(5)


@pytest.mark.parametrize(
    ("value", "read"), [(None, ()), ("ab", ()), (5, ()), ([], ()), (["a", "b"], ("a", "b")), (["a", 5], ("a", "5"))]
)
def test_texts_are_read_from_a_list_only(value: Any, read: tuple[str, ...]) -> None:
    assert stored.texts(value) == read


OTHERS = {"lease": 5, "timeout": 5, "max_crashes": 2, "tags": ["a"]}


@reproducible
@given(VALUES)
def test_whatever_is_stored_can_be_read(value: Any) -> None:
    JobSettings.read(encode(value).decode())
    QueueSettings.read(encode(value).decode())


@reproducible
@given(VALUES)
def test_one_setting_nobody_understands_spoils_no_other(value: Any) -> None:
    for name in ("backoff", "retention", "max_attempts", "of a later version"):
        text = encode({**OTHERS, name: value}).decode()
        job, queue = JobSettings.read(text), QueueSettings.read(text)
        assert (job.timeout, job.max_crashes, job.tags) == (5, 2, ("a",))
        assert (queue.lease, queue.timeout, queue.max_crashes) == (5, 5, 2)
        assert job is not NO_SETTINGS
