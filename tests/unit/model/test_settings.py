"""Settings of a queue: checked before they are stored, and read back as they were meant."""

from __future__ import annotations

from typing import Any

import pytest

from dibs.errors import InvalidOption
from dibs.model.backoff import Backoff
from dibs.model.json_text import encode
from dibs.model.settings import DEFAULT_RETENTION, QueueOptions, QueueSettings, checked


def _stored(options: dict[str, Any]) -> QueueSettings:
    return QueueSettings.read(encode(checked(options)).decode())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lease": "1m30s"}, QueueSettings(lease=90.0)),
        ({"lease": 1}, QueueSettings(lease=1.0)),
        ({"timeout": "2h"}, QueueSettings(timeout=7_200.0)),
        ({"max_attempts": 1}, QueueSettings(max_attempts=1)),
        ({"max_crashes": 1_000}, QueueSettings(max_crashes=1_000)),
        ({"backoff": Backoff.none()}, QueueSettings(backoff=Backoff.none())),
        ({"backoff": Backoff.fixed("1h", 0.5)}, QueueSettings(backoff=Backoff.fixed("1h", 0.5))),
        (
            {"retention": {"dead": "1d", "completed": None}},
            QueueSettings(retention={"dead": 86_400, "completed": None}),
        ),
        ({"retention": 0}, QueueSettings(retention=dict.fromkeys(DEFAULT_RETENTION, 0.0))),
        ({"retention": "1h"}, QueueSettings(retention=dict.fromkeys(DEFAULT_RETENTION, 3_600.0))),
        ({}, QueueSettings()),
        (dict.fromkeys(QueueOptions.__annotations__), QueueSettings()),
    ],
    ids=str,
)
def test_a_setting_that_was_stored_is_read_as_it_was_meant(given: dict[str, Any], expected: QueueSettings) -> None:
    assert _stored(given) == expected


@pytest.mark.parametrize("text", [None, "", "{}", '{"of a later version":1}'])
def test_a_queue_without_settings_leaves_all_to_the_defaults(text: str | None) -> None:
    assert QueueSettings.read(text) == QueueSettings()


def test_none_stays_in_what_is_stored_so_that_it_removes_a_setting() -> None:
    assert checked({"lease": None, "timeout": 5}) == {"lease": None, "timeout": 5.0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"leash": 5}, "'leash' is not a setting"),
        ({"lease": 0.999}, "shorter than a second"),
        ({"lease": "0s"}, "shorter than a second"),
        ({"lease": -1}, "lease=-1"),
        ({"timeout": "x"}, "timeout='x'"),
        ({"max_attempts": 0}, "max_attempts=0"),
        ({"max_crashes": 1_001}, "max_crashes=1001"),
        ({"backoff": "1m"}, "backoff='1m'"),
        ({"retention": "long"}, "retention='long'"),
        ({"retention": {"done": 5}}, "'done' is no outcome"),
        ({"retention": {"dead": -1}}, "retention=-1"),
    ],
    ids=str,
)
def test_an_impossible_setting_is_refused_by_its_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        checked(given)


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        (None, {"completed": 86_400.0, "cancelled": 86_400.0, "discarded": 86_400.0, "dead": None}),
        ("1h", dict.fromkeys(DEFAULT_RETENTION, 3_600.0)),
        ({"dead": 1}, {"completed": 86_400.0, "cancelled": 86_400.0, "discarded": 86_400.0, "dead": 1.0}),
        ({"completed": None}, {"completed": None, "cancelled": 86_400.0, "discarded": 86_400.0, "dead": None}),
        ({}, dict(DEFAULT_RETENTION)),
    ],
    ids=str,
)
def test_each_outcome_is_kept_for_its_own_time(retention: Any, kept: dict[str, float | None]) -> None:
    settings = _stored({"retention": retention})
    assert {outcome: settings.keep(outcome) for outcome in kept} == kept
