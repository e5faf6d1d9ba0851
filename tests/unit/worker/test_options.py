"""Options of a worker: checked once, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from dibs.errors import InvalidName, InvalidOption
from dibs.worker.options import Settings, WorkerOptions, check


def test_a_worker_of_whom_nothing_is_said_serves_every_queue() -> None:
    assert check(None, {}) == Settings(None, {})
    assert check(None, dict.fromkeys(WorkerOptions.__annotations__)) == Settings(None, {})


@pytest.mark.parametrize(
    ("queues", "chosen", "caps"),
    [
        (["a", "b", "a"], {"a", "b"}, {}),
        (("a",), {"a"}, {}),
        ([], set(), {}),
        ({"a": 1, "b": 10_000}, {"a", "b"}, {"a": 1, "b": 10_000}),
    ],
)
def test_queues_are_a_list_of_names_or_names_with_caps(queues: Any, chosen: set[str], caps: dict[str, int]) -> None:
    settings = check(queues, {})
    assert settings.queues == frozenset(chosen)
    assert settings.caps == caps


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"concurrency": 1}, 1),
        ({"concurrency": 10_000}, 10_000),
        ({"processes_limit": 256}, 256),
        ({"lease": "2m"}, 120.0),
        ({"lease": 1}, 1.0),
        ({"grace": 0}, 0.0),
        ({"wakeups": "poll"}, "poll"),
        ({"poll": "50ms"}, 0.05),
        ({"poll": 0}, 0.001),
        ({"batch": 5_000}, 5_000),
        ({"name": "worker-1"}, "worker-1"),
    ],
    ids=str,
)
def test_an_option_is_understood_and_kept_within_reason(given: dict[str, Any], value: Any) -> None:
    [name] = given
    assert getattr(check(None, given), name) == value


@pytest.mark.parametrize(
    ("queues", "given", "words"),
    [
        ("mail", {}, r"queues=\['mail'\]"),
        ({"a": 0}, {}, r"queues\['a'\]=0"),
        ({"a": True}, {}, r"queues\['a'\]=True"),
        (None, {"threads": 4}, "'threads' is not an option of a worker"),
        (None, {"concurrency": 0}, "concurrency=0 .* from 1 to 10,000"),
        (None, {"concurrency": 2.0}, "concurrency=2.0"),
        (None, {"concurrency": True}, "concurrency=True"),
        (None, {"processes_limit": 257}, "processes_limit=257 .* from 1 to 256"),
        (None, {"batch": 5_001}, "batch=5001 .* from 1 to 5,000"),
        (None, {"wakeups": "listen"}, "wakeups='listen'"),
        (None, {"lease": "x"}, "lease='x'"),
        (None, {"lease": 0}, "lease=0 is shorter than a second"),
        (None, {"lease": "999ms"}, "lease='999ms' is shorter than a second"),
        (None, {"grace": -1}, "grace=-1"),
        (None, {"poll": "soon"}, "poll='soon'"),
    ],
    ids=str,
)
def test_an_impossible_option_is_refused_by_its_name(queues: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        check(queues, given)


@pytest.mark.parametrize(("queues", "given"), [(["a b"], {}), ([7], {}), ({"é": 1}, {}), (None, {"name": "my worker"})])
def test_a_name_outside_the_letters_is_refused(queues: Any, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidName):
        check(queues, given)
