"""What a batch of outcomes asks of the database, and what it takes for lost."""

from __future__ import annotations

from typing import Any

import pytest

from dibs.model.outcome import Back, Final, Problem
from dibs.store.settle import Settlement, beat, settle
from dibs.store.statement import Rows
from tests.unit.fakes import Driven, Replies, a_dialect, drive

NO = Problem("error", "ValueError", "no")
HOLDERS = dict.fromkeys("abcd", (2, "worker-1"))


def _ids(*names: str) -> Rows:
    return [(name,) for name in names]


def _settled(items: list[Settlement], replies: Replies) -> Driven[set[str]]:
    return drive(settle(a_dialect(), items, HOLDERS), replies)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ([Final("a", 1, "completed"), Final("b", 2, "cancelled")], ["archive"]),
        ([Back("a", 1, 0), Back("b", 2, 5)], ["put_back"]),
        ([Final("a", 1, "completed"), Back("b", 2, 0)], ["atomic", "archive", "put_back"]),
        ([Final("a", 1, "dead", problem=NO), Final("b", 2, "completed")], ["atomic", "archive", "add_errors"]),
        ([Back("a", 1, 0, problem=NO), Back("b", 2, 0)], ["atomic", "put_back", "add_errors"]),
        (
            [Final("a", 1, "dead", problem=NO, crash=1), Back("b", 2, 0, problem=NO)],
            ["atomic", "count_crashes", "archive", "put_back", "add_errors"],
        ),
    ],
    ids=["ends", "returns", "both", "an error", "a retry", "a crash"],
)
def test_only_what_needs_a_transaction_gets_one(items: list[Settlement], names: list[str]) -> None:
    found = _settled(items, {"archive": _one_by_one(items, Final), "put_back": _one_by_one(items, Back)})
    assert found.names == names
    assert found.answer == set()


def _one_by_one(items: list[Settlement], kind: type[Settlement]) -> Rows:
    return _ids(*(item.id for item in items if isinstance(item, kind)))


def test_ended_jobs_travel_with_outcome_result_and_age() -> None:
    items: list[Settlement] = [Final("a", 1, "completed", "7", 50), Final("b", 2, "discarded")]
    found = _settled(items, {"archive": _ids("a", "b")})
    assert found.params("archive")["ended"] == {
        "ids": ["a", "b"],
        "tokens": [1, 2],
        "outcomes": ["completed", "discarded"],
        "results": ["7", None],
        "ages": [50, None],
    }


def test_returned_jobs_travel_with_delay_refund_and_crash() -> None:
    found = _settled([Back("a", 1, 5, refund=1), Back("b", 2, 0, crash=1, at=70)], {"put_back": _ids("a", "b")})
    assert found.params("put_back")["batch"] == {
        "ids": ["a", "b"],
        "tokens": [1, 2],
        "delays": [5, 0],
        "refunds": [1, 0],
        "crashes": [0, 1],
        "ats": [None, 70],
    }


def test_a_job_somebody_else_holds_is_lost_and_gets_no_error() -> None:
    items: list[Settlement] = [Back("a", 1, 0, problem=NO), Back("b", 2, 0, problem=NO), Back("c", 3, 0)]
    found = _settled(items, {"put_back": _ids("b")})
    assert found.answer == {"a", "c"}
    assert found.params("add_errors")["problems"]["ids"] == ["b"]


def test_no_error_is_stored_when_every_job_that_had_one_is_lost() -> None:
    found = _settled([Back("a", 1, 0, problem=NO)], {})
    assert "add_errors" not in found.names
    assert found.answer == {"a"}


def test_an_error_is_stored_with_attempt_worker_and_its_words() -> None:
    found = _settled([Final("a", 1, "dead", problem=NO)], {"archive": _ids("a")})
    assert found.params("add_errors")["problems"] == {
        "ids": ["a"],
        "tokens": [1],
        "attempts": [2],
        "kinds": ["error"],
        "workers": ["worker-1"],
        "problems": ['{"type":"ValueError","message":"no","traceback":null}'],
    }


def test_a_job_this_claim_has_ended_before_is_settled_and_not_lost() -> None:
    items: list[Settlement] = [Final("a", 1, "completed"), Final("b", 2, "completed"), Final("c", 3, "completed")]
    found = _settled(items, {"archive": _ids("a"), "settled_by": _ids("c")})
    assert found.answer == {"b"}
    assert found.params("settled_by")["batch"] == {
        "ids": ["b", "c"],
        "tokens": [2, 3],
        "outcomes": ["completed", "completed"],
    }


def test_a_job_this_claim_has_put_back_before_is_settled_and_not_lost() -> None:
    items: list[Settlement] = [Final("a", 1, "completed"), Back("b", 2, 0), Back("c", 3, 0, problem=NO)]
    found = _settled(items, {"archive": _ids("a"), "returned_by": _ids("c")})
    assert "settled_by" not in found.names
    assert found.answer == {"b"}
    assert found.params("returned_by")["batch"] == {"ids": ["b", "c"], "tokens": [2, 3], "kinds": [None, "error"]}


def test_a_counted_crash_raises_the_token_its_end_is_fenced_by() -> None:
    items: list[Settlement] = [Final("a", 1, "dead", problem=NO, crash=1), Final("b", 5, "dead", problem=NO)]
    found = _settled(items, {"archive": _ids("a", "b")})
    assert found.params("count_crashes")["batch"] == {"ids": ["a"], "tokens": [1]}
    assert found.params("archive")["ended"]["tokens"] == [2, 5]


@pytest.mark.parametrize(("rows", "lost"), [(_ids("a", "b"), set()), (_ids("b"), {"a"}), ([], {"a", "b"})])
def test_a_beat_names_those_whose_lease_it_could_not_extend(rows: Rows, lost: set[str]) -> None:
    held: list[tuple[str, int, Any]] = [("a", 1, None), ("b", 2, 70)]
    found = drive(beat(a_dialect(), held, 60_000_000), {"beat": rows})
    assert found.answer == lost
    assert found.params("beat") == {
        "lease": 60_000_000,
        "batch": {"ids": ["a", "b"], "tokens": [1, 2], "ages": [None, 70]},
    }
