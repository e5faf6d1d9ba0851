"""What an enqueue asks of the database: how many statements, in which order, with which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import Duplicate
from dibs.model.job import Enqueued, NewJob
from dibs.model.json_text import encode
from dibs.store import bulk
from dibs.store import enqueue as operations
from dibs.store.enqueue import add_lanes, enqueue, enqueue_again, enqueue_many, enqueue_many_again, lanes_of
from dibs.store.statement import Copy
from tests.unit.fakes import VALUES, Driven, Replies, a_dialect, a_new_job, drive, reproducible


def _many(jobs: list[NewJob], bulk: bool = True, replies: Replies | None = None, **can: bool) -> Driven[list[Enqueued]]:
    ids = [f"id{index}" for index in range(len(jobs))]
    return drive(enqueue_many(a_dialect(**can), bulk, jobs, ids), replies)


def test_a_job_without_a_key_is_one_statement_with_all_it_needs() -> None:
    found = drive(
        enqueue(a_new_job("[1]", "send", queue="mail", priority=3, delay=5, max_attempts=2, extra="{}"), "a", False)
    )
    assert found.answer == Enqueued("a", True)
    assert found.names == ["enqueue"]
    assert found.params("enqueue") == {
        "id": "a",
        "queue": "mail",
        "task": "send",
        "priority": 3,
        "payload": "[1]",
        "max_attempts": 2,
        "options": "{}",
        "run_at": None,
        "delay": 5,
    }


@pytest.mark.parametrize(("rows", "quiet"), [([(None,)], True), ([(False,)], False)], ids=["nobody", "somebody"])
def test_who_does_not_know_whether_somebody_sleeps_rings_and_is_told(rows: Any, quiet: bool) -> None:
    found = drive(enqueue(a_new_job(), "a", True), {"enqueue_and_ring": rows})
    assert found.names == ["enqueue_and_ring"]
    assert found.answer == Enqueued("a", True, quiet=quiet)


@pytest.mark.parametrize("on_conflict", ["existing", "skip", "raise", "replace"])
def test_a_free_key_is_taken_whatever_was_to_be_done_otherwise(on_conflict: str) -> None:
    job = a_new_job(unique="key", on_conflict=on_conflict)
    found = drive(enqueue(job, "a", False), {"enqueue_unique": [("a", 0)]})
    assert found.answer == Enqueued("a", True)
    assert found.names[-1] == "enqueue_unique"
    assert found.params("enqueue_unique")["unique_key"] == "key"


@pytest.mark.parametrize("on_conflict", ["existing", "skip"])
def test_the_holder_of_a_key_is_the_answer(on_conflict: str) -> None:
    found = drive(
        enqueue(a_new_job(unique="key", on_conflict=on_conflict), "a", False), {"enqueue_unique": [("holder", 0)]}
    )
    assert found.answer == Enqueued("holder", False)
    assert found.names == ["enqueue_unique"]


def test_the_holder_of_a_key_is_named_in_the_error() -> None:
    with pytest.raises(Duplicate, match="'key' of queue 'mail' belongs to job holder") as raised:
        drive(
            enqueue(a_new_job(queue="mail", unique="key", on_conflict="raise"), "a", False),
            {"enqueue_unique": [("holder", 0)]},
        )
    assert raised.value.data == {"id": "holder"}


@pytest.mark.parametrize(("rows", "replaced"), [([("holder",)], True), ([], False)], ids=["waiting", "held"])
def test_a_replacement_changes_the_waiting_job_in_one_transaction(rows: Any, replaced: bool) -> None:
    found = drive(
        enqueue(a_new_job("[2]", unique="key", on_conflict="replace"), "a", False),
        {"enqueue_unique": [("holder", 0)], "replace_waiting": rows},
    )
    assert found.answer == Enqueued("holder", False, replaced)
    assert found.names == ["atomic", "enqueue_unique", "replace_waiting"]
    params = found.params("replace_waiting")
    assert (params["id"], params["payload"]) == ("holder", "[2]")
    assert "queue" not in params


def test_plain_jobs_go_through_the_loader_where_there_is_one() -> None:
    found = _many([a_new_job(), a_new_job(queue="mail", max_attempts=3)])
    assert found.names == ["copy_jobs", "ring"]
    assert found.answer == [Enqueued("id0", True), Enqueued("id1", True)]


@pytest.mark.parametrize(
    ("options", "bulk", "can"),
    [
        ({"delay": 0}, True, {}),
        ({"run_at": 0}, True, {}),
        ({}, False, {}),
        ({}, True, {"load_in_bulk": False}),
    ],
)
def test_one_job_that_the_loader_cannot_take_sends_all_by_statement(options: Any, bulk: bool, can: Any) -> None:
    found = _many([a_new_job(), a_new_job(**options)], bulk, **can)
    assert found.names == ["enqueue_batch", "ring"]
    assert found.params("enqueue_batch")["jobs"]["ids"] == ["id0", "id1"]


def test_nobody_is_rung_where_nobody_can_hear_or_nothing_was_stored() -> None:
    assert _many([a_new_job()], False, ring_sleepers=False).names == ["enqueue_batch"]
    assert _many([], False).names == []
    assert _many([], False).answer == []


@pytest.mark.parametrize(("count", "sizes"), [(2, [2]), (3, [3]), (4, [3, 1]), (7, [3, 3, 1])])
def test_a_large_load_is_cut_and_still_comes_all_together(
    count: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "BATCH", 3)
    found = _many([a_new_job() for _ in range(count)], False)
    batches = [request.params["jobs"]["ids"] for request in found.requests if request.name == "enqueue_batch"]  # type: ignore[union-attr]
    assert [len(batch) for batch in batches] == sizes
    assert [name for batch in batches for name in batch] == [f"id{index}" for index in range(count)]
    assert ("atomic" in found.names) == (len(sizes) > 1)


def test_keys_are_taken_in_one_order_whatever_the_order_of_the_jobs() -> None:
    jobs = [
        a_new_job(queue="b", unique="1"),
        a_new_job(),
        a_new_job(queue="a", unique="2"),
        a_new_job(queue="a", unique="1"),
        a_new_job(queue="a", unique="1"),
    ]
    found = _many(jobs, False, {"enqueue_unique": lambda params: [(f"holder of {params['unique_key']}", 0)]})
    taken = [request.params for request in found.requests if request.name == "enqueue_unique"]  # type: ignore[union-attr]
    assert [(each["queue"], each["unique_key"], each["id"]) for each in taken] == [
        ("a", "1", "id3"),
        ("a", "1", "id4"),
        ("a", "2", "id2"),
        ("b", "1", "id0"),
    ]
    assert found.names[0] == "atomic"
    assert [answer.id for answer in found.answer] == ["holder of 1", "id1", "holder of 2", "holder of 1", "holder of 1"]
    assert found.params("enqueue_batch")["jobs"]["ids"] == ["id1"]


def test_a_load_of_keyed_jobs_alone_sends_no_empty_batch() -> None:
    found = _many([a_new_job(unique="a")], True, {"enqueue_unique": [("id0", 0)]})
    assert found.names == ["atomic", "enqueue_unique"]
    assert found.answer == [Enqueued("id0", True)]


def test_a_repeated_load_stores_only_what_is_missing() -> None:
    jobs = [a_new_job(f"[{index}]") for index in range(3)]
    found = drive(enqueue_many_again(a_dialect(), jobs, ["a", "b", "c"]), {"stored": [("b",)]})
    assert found.names == ["atomic", "stored", "enqueue_batch", "ring", "drop_finished"]
    assert found.params("stored") == {"ids": "a,b,c"}
    assert found.params("enqueue_batch")["jobs"]["payloads"] == ["[0]", "[2]"]
    assert found.params("drop_finished") == {"ids": "a,c"}
    assert found.answer == [Enqueued("a", True), Enqueued("b", True), Enqueued("c", True)]


def test_a_repeated_enqueue_answers_by_the_holder_of_its_key() -> None:
    job = a_new_job(unique="key")
    again = drive(enqueue_again(a_dialect(), job, "a"), {"enqueue_unique": [("holder", 0)]})
    assert again.answer == Enqueued("holder", False)
    arrived = drive(enqueue_again(a_dialect(), job, "a"), {"stored": [("a",)]})
    assert arrived.answer == Enqueued("a", True)
    assert "enqueue_unique" not in arrived.names


def test_new_lanes_are_remembered_in_one_order() -> None:
    jobs = [a_new_job(queue="b"), a_new_job(queue="a", priority=9), a_new_job(queue="a"), a_new_job(queue="b")]
    lanes = lanes_of(jobs)
    assert lanes == {("a", 9), ("a", 100), ("b", 100)}
    found = drive(add_lanes(lanes))
    assert [tuple(request.params.values()) for request in found.requests] == [("a", 9), ("a", 100), ("b", 100)]  # type: ignore[union-attr]


def _loaded(found: Driven[Any]) -> list[list[str | None]]:
    """What the server's loader makes of the text it is sent: fields by tab, rows by line, then the escapes."""
    copy = found.requests[0]
    assert isinstance(copy, Copy)
    text = "".join(copy.chunks)
    assert text.endswith("\n") or not text
    return [[_field(field) for field in line.split("\t")] for line in text.split("\n")[:-1]]


def _field(text: str) -> str | None:
    if text == r"\N":
        return None
    out, letters = "", iter(text)
    for letter in letters:
        out += next(letters) if letter == "\\" else letter
    return out


def test_the_loader_is_sent_each_job_in_the_order_of_the_columns() -> None:
    found = _many([a_new_job("[1]", "send", queue="mail", priority=-3, max_attempts=2, extra='{"a":1}'), a_new_job()])
    copy = found.requests[0]
    assert isinstance(copy, Copy)
    assert copy.columns == ("id", "queue", "task", "priority", "payload", "max_attempts", "options")
    assert _loaded(found) == [
        ["id0", "mail", "send", "-3", "[1]", "2", '{"a":1}'],
        ["id1", "default", "work", "100", "{}", None, None],
    ]


@reproducible
@given(st.lists(VALUES | st.sampled_from(["\\", "\\N", "\t\n\r", "\\.", "a\\tb"]), min_size=1, max_size=5))
def test_any_payload_survives_the_loader(values: list[Any]) -> None:
    texts = [encode(value).decode() for value in values]
    assert [row[4] for row in _loaded(_many([a_new_job(text) for text in texts]))] == texts


def test_any_options_survive_the_loader() -> None:
    extra = encode({"tags": ["\\", '"\\N"', "\n"]}).decode()
    assert _loaded(_many([a_new_job(extra=extra)]))[0][6] == extra


@pytest.mark.parametrize(("count", "pieces"), [(1, 1), (3, 1), (4, 2), (7, 3)])
def test_the_loader_is_sent_a_long_load_in_pieces(count: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 3)
    found = _many([a_new_job(f"[{index}]") for index in range(count)])
    copy = found.requests[0]
    assert isinstance(copy, Copy)
    chunks = list(copy.chunks)
    assert len(chunks) == pieces
    assert "".join(chunks).count("\n") == count


def test_jobs_that_share_options_keep_their_own_tasks() -> None:
    shared = a_new_job()
    jobs = [NewJob(task, "{}", shared.options) for task in ("a", "b", "a")]
    assert [row[2] for row in _loaded(_many(jobs))] == ["a", "b", "a"]
