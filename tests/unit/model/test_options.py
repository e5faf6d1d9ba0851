"""Options of an enqueue: what is given counts, what is not stays as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dibs.errors import InvalidName, InvalidOption, NaiveDatetime
from dibs.model.backoff import Backoff
from dibs.model.job import JobSettings
from dibs.model.options import EnqueueOptions, JobOptions, check_attempts

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PLAIN = JobOptions()


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"queue": "mail"}, {"queue": "mail"}),
        ({"priority": 0}, {"priority": 0}),
        ({"delay": 0}, {"delay": 0}),
        ({"delay": "1m30s"}, {"delay": 90_000_000}),
        ({"run_at": NOON}, {"run_at": 1_893_499_200_000_000}),
        ({"at": "2030-01-01T12:00Z"}, {"run_at": 1_893_499_200_000_000}),
        ({"run_at": datetime(1969, 1, 1, tzinfo=UTC)}, {"run_at": 0}),
        ({"unique": "a"}, {"unique": "a"}),
        ({"on_conflict": "raise"}, {"on_conflict": "raise"}),
        ({"max_attempts": 1}, {"max_attempts": 1}),
        ({"max_attempts": 1_000}, {"max_attempts": 1_000}),
        ({"timeout": "2m"}, {"extra": '{"timeout":120.0}'}),
        ({"tags": ["b", "a"]}, {"extra": '{"tags":["b","a"]}'}),
        ({"tags": ("x",) * 16}, {"extra": '{"tags":[' + ",".join(['"x"'] * 16) + "]}"}),
        ({"tags": []}, {}),
    ],
    ids=str,
)
def test_an_option_that_is_given_changes_its_field_only(given: dict[str, Any], changed: dict[str, Any]) -> None:
    made = PLAIN.override(given)
    names = PLAIN.__dataclass_fields__
    assert {name: getattr(made, name) for name in names if getattr(made, name) != getattr(PLAIN, name)} == changed


def test_options_that_are_none_count_as_not_given() -> None:
    base = PLAIN.override({"queue": "mail", "delay": 5, "unique": "a", "timeout": 3})
    assert base.override(dict.fromkeys(EnqueueOptions.__annotations__)) is base
    assert PLAIN.override({}) is PLAIN


def test_later_options_replace_earlier_ones_and_leave_the_others() -> None:
    base = PLAIN.override({"queue": "mail", "max_attempts": 3, "timeout": 5, "tags": ["a"]})
    made = base.override({"queue": "bulk", "timeout": 9, "backoff": Backoff.fixed(7)})
    assert (made.queue, made.max_attempts) == ("bulk", 3)
    assert JobSettings.read(made.extra) == JobSettings(9.0, Backoff.fixed(7), ("a",))
    assert JobSettings.read(base.extra) == JobSettings(5.0, None, ("a",))


def test_a_crash_budget_travels_beside_the_other_rare_options() -> None:
    base = PLAIN.override({"timeout": 5})
    assert JobSettings.read(base.limited(2).extra) == JobSettings(5.0, max_crashes=2)
    assert JobSettings.read(PLAIN.limited(2).override({"timeout": 5}).extra) == JobSettings(5.0, max_crashes=2)
    assert base.limited(None) is base


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({}, True),
        ({"queue": "a", "priority": 3, "max_attempts": 2, "timeout": 5, "tags": ["a"]}, True),
        ({"unique": "a"}, False),
        ({"delay": 0}, False),
        ({"run_at": NOON}, False),
    ],
    ids=str,
)
def test_only_jobs_without_key_and_time_go_through_the_bulk_load(given: dict[str, Any], plain: bool) -> None:
    assert PLAIN.override(given).plain is plain


def test_an_unknown_option_is_named_with_those_that_exist() -> None:
    with pytest.raises(InvalidOption, match="'prio' is not an option") as raised:
        PLAIN.override({"queue": "a", "prio": 1})
    assert all(name in raised.value.remedy for name in EnqueueOptions.__annotations__)


@pytest.mark.parametrize("other", ["delay", "at"])
def test_two_ways_to_say_when_exclude_each_other(other: str) -> None:
    with pytest.raises(InvalidOption, match=r"exclude|two names"):
        PLAIN.override({"run_at": NOON, other: 5 if other == "delay" else NOON})
    with pytest.raises(InvalidOption):
        PLAIN.override({"at": NOON, "delay": 0})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"at": datetime(2030, 1, 1)}, NaiveDatetime, "^at=.* has no time zone"),
        ({"delay": "soon"}, InvalidOption, "delay='soon'"),
        ({"timeout": -1}, InvalidOption, "timeout=-1"),
        ({"backoff": 5}, InvalidOption, "backoff=5"),
        ({"on_conflict": []}, InvalidOption, r"on_conflict=\[\]"),
        ({"tags": ["ok", "not ok"]}, InvalidName, "'not ok' cannot be a tag name"),
        ({"tags": {"a": 1}}, InvalidOption, "tags="),
        ({"tags": ["x"] * 17}, InvalidOption, "at most 16"),
        ({"unique": ""}, InvalidOption, "unique=''"),
    ],
    ids=str,
)
def test_an_error_names_the_option_that_is_wrong(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        PLAIN.override(given)


@pytest.mark.parametrize("limit", [0, 1_001, -1, 1.0, "3", True, None])
def test_a_limit_of_attempts_is_a_whole_number_up_to_a_thousand(limit: Any) -> None:
    with pytest.raises(InvalidOption, match=r"max_crashes=.*from 1 to 1,000"):
        check_attempts(limit, "max_crashes")


@pytest.mark.parametrize("option", ["priority", "max_attempts", "delay", "timeout"])
def test_numbers_too_long_to_be_written_are_refused_in_words(option: str) -> None:
    with pytest.raises(InvalidOption, match="bits"):
        PLAIN.override({option: 10**5000})
