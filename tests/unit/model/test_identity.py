"""Job ids ascend in one process, whatever its clock does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from dibs.errors import InvalidOption
from dibs.model import identity
from dibs.model.identity import NIL, check_id, new_id, new_ids

MILLISECOND = 1_000_000
NOON = 1_790_000_000_000 * MILLISECOND
SetClock = Callable[[Iterator[int]], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Lets ids be made by the times given, as if none had been made before."""
    monkeypatch.setattr(identity, "_last", 0)

    def tell(times: Iterator[int]) -> None:
        monkeypatch.setattr(identity, "time", SimpleNamespace(time_ns=lambda: next(times)))

    return tell


def _ascending(ids: list[str]) -> bool:
    return ids == sorted(ids) and len(set(ids)) == len(ids)


def test_an_id_is_a_uuid_of_version_seven_in_canonical_spelling() -> None:
    for text in new_ids(200):
        found = UUID(text)
        assert str(found) == text
        assert (found.version, found.variant) == (7, "specified in RFC 4122")


def test_an_id_begins_with_the_milliseconds_of_the_clock(set_clock: SetClock) -> None:
    set_clock(iter([NOON, NOON + MILLISECOND - 1, NOON + MILLISECOND]))
    stamps = [UUID(new_id()).int >> 80 for _ in range(3)]
    assert [stamp - NOON // MILLISECOND for stamp in stamps] == [0, 0, 1]


def test_ids_ascend_within_one_millisecond_by_its_fraction(set_clock: SetClock) -> None:
    set_clock(iter(range(NOON, NOON + MILLISECOND, 1_000)))
    assert _ascending([new_id() for _ in range(1_000)])


def test_ids_ascend_while_the_clock_stands_still(set_clock: SetClock) -> None:
    set_clock(repeat(NOON))
    assert _ascending([new_id() for _ in range(5_000)])


def test_ids_ascend_when_the_clock_goes_back(set_clock: SetClock) -> None:
    set_clock(iter(range(NOON, NOON - 3_600_000 * MILLISECOND, -1_000 * MILLISECOND)))
    ids = [new_id() for _ in range(3_600)]
    assert _ascending(ids)
    assert (UUID(ids[-1]).int >> 80) - NOON // MILLISECOND <= 1


def test_single_ids_and_batches_ascend_together(set_clock: SetClock) -> None:
    set_clock(repeat(NOON))
    ids = [*new_ids(10_000), new_id(), *new_ids(3), new_id()]
    assert len(ids) == 10_005
    assert _ascending(ids)


def test_no_ids_at_all_leave_the_order_as_it_was(set_clock: SetClock) -> None:
    set_clock(iter([NOON, NOON + 1, NOON]))
    first = new_id()
    assert new_ids(0) == []
    assert new_id() > first


def test_two_processes_at_the_same_moment_make_different_ids(set_clock: SetClock, monkeypatch: Any) -> None:
    set_clock(repeat(NOON))
    mine = new_ids(100)
    monkeypatch.setattr(identity, "_last", 0)
    theirs = new_ids(100)
    assert [text[:18] for text in mine] == [text[:18] for text in theirs]
    assert not set(mine) & set(theirs)


def test_the_nil_id_comes_before_every_other() -> None:
    assert new_id() > NIL
    assert UUID(NIL).int == 0


@pytest.mark.parametrize(
    "spelling",
    [
        "01890000-0000-7000-8000-0000000000ab",
        "01890000-0000-7000-8000-0000000000AB",
        "{01890000-0000-7000-8000-0000000000ab}",
        "018900000000700080000000000000ab",
        "urn:uuid:01890000-0000-7000-8000-0000000000ab",
        UUID("01890000-0000-7000-8000-0000000000ab"),
    ],
)
def test_an_id_is_understood_in_every_spelling_of_a_uuid(spelling: Any) -> None:
    assert check_id(spelling) == "01890000-0000-7000-8000-0000000000ab"


@pytest.mark.parametrize("wrong", ["", "7", 7, None, [], b"018900000000700080000000000000ab", "g" * 32, "0" * 33])
def test_what_is_no_uuid_is_no_job_id(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="is not a job id"):
        check_id(wrong)
