"""The catalogue of statements: the same names everywhere, the same parameters, every difference explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dibs import Dibs
from dibs.model.status import FINAL, HELD, TRANSITIONS, WAITING, Status
from dibs.store import access
from dibs.store.dialect import json_array, pg_array
from dibs.store.runner import run
from dibs.store.statement import ATOMIC, Copy, load
from tests.conftest import Make
from tests.contract.scenario import tell
from tests.contract.statuses import one_of_each
from tests.support.clock import FakeClock
from tests.support.databases import Database, Postgres

DIALECTS = ("postgres", "sqlite", "mysql")
OTHERS = ("sqlite", "mysql")


def _source(dialect: str) -> str:
    return files("dibs.store").joinpath(f"sql/{dialect}.sql").read_text(encoding="utf-8")


def _names(dialect: str) -> list[str]:
    return re.findall(r"^-- name: (\w+)", _source(dialect), re.MULTILINE)


def _comments(dialect: str) -> dict[str, list[str]]:
    parts = re.split(r"^-- name: (\w+)[^\n]*\n", _source(dialect), flags=re.MULTILINE)[1:]
    comments = (re.match(r"(--[^\n]*\n)*", body) for body in parts[1::2])
    return {name: found[0].splitlines() if found else [] for name, found in zip(parts[::2], comments, strict=True)}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_has_a_name_of_its_own_and_says_what_it_does(dialect: str) -> None:
    names = _names(dialect)
    assert len(names) == len(set(names)) > 40
    for name, lines in _comments(dialect).items():
        assert lines, name
        assert not lines[0].startswith("-- differs"), name


@pytest.mark.parametrize("dialect", OTHERS)
def test_every_statement_of_another_dialect_says_how_it_differs_and_why(dialect: str) -> None:
    for name, lines in _comments(dialect).items():
        differs = [line for line in lines if line.startswith("-- differs: ")]
        assert len(differs) == 1, name
        assert len(differs[0]) > 20, name


@pytest.mark.parametrize("dialect", OTHERS)
def test_statements_of_one_name_come_in_one_order(dialect: str) -> None:
    postgres, other = _names("postgres"), _names(dialect)
    shared = set(postgres) & set(other)
    assert [name for name in postgres if name in shared] == [name for name in other if name in shared]
    bulk = {"copy_jobs"} if dialect == "sqlite" else set()
    assert set(postgres) - shared == bulk | {"enqueue_and_ring", "ring", "worker_sleep"}
    assert set(other) <= shared


@pytest.mark.parametrize("dialect", OTHERS)
def test_the_first_line_of_a_statement_is_the_same_everywhere(dialect: str) -> None:
    """The promise of a statement belongs to its name; what differs is said below it."""
    postgres, other = _comments("postgres"), _comments(dialect)
    for name in set(postgres) & set(other):
        assert postgres[name][0].split(".")[0] == other[name][0].split(".")[0], name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_values_are_bound_and_never_written_into_statements(dialect: str) -> None:
    for block in load(dialect, None).values():
        assert "%s" not in block.text
        assert "{" not in re.sub(r"'\{[^']*'", "", block.text), block.name


@pytest.fixture
def sent(timed: Dibs, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The parameters with which each statement was sent."""
    seen: dict[str, set[str]] = {}

    def watched(session: Any, operation: Any) -> Any:
        execute = session.execute

        def note(request: Any) -> Any:
            if not isinstance(request, Copy):
                seen.setdefault(request.name, set()).update(request.params)
            return execute(request)

        monkeypatch.setattr(session, "execute", note)
        try:
            return run(session, operation)
        finally:
            monkeypatch.setattr(session, "execute", execute)

    monkeypatch.setattr(access, "run", watched)
    return seen


def test_operations_pass_the_parameters_that_statements_name(
    timed: Dibs, clock: FakeClock, sent: dict[str, set[str]]
) -> None:
    tell(timed, "q", clock)
    dead = one_of_each(timed, "z")["dead"]
    timed.get(dead)
    timed.enqueue("mail").status()
    blocks = timed.store.dialect.blocks
    assert {name: names for name, names in sent.items() if names != blocks[name].parameters - {"now"}} == {}
    told_elsewhere = {
        "enqueue",
        "enqueue_and_ring",
        "stored",
        "enqueue_again",
        "drop_finished",
        "settled_by",
        "returned_by",
        "add_chore",
        "take_chore",
        "clock",
    }
    workers = {"worker_beat", "worker_sleep", "worker_gone", "forget_workers", "workers", "copy_jobs", "count_crashes"}
    assert set(blocks) - set(sent) <= told_elsewhere | workers


def test_several_statements_of_one_operation_begin_with_a_transaction(
    timed: Dibs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only these send several statements without one, and why that is safe."""
    loose: dict[str, list[str]] = {}

    def watched(session: Any, operation: Any) -> Any:
        seen: list[Any] = []

        def pass_on() -> Iterator[Any]:
            reply: Any = None
            while True:
                try:
                    request = operation.send(reply)
                except StopIteration as ended:
                    return ended.value
                seen.append(request)
                reply = yield request

        answer = run(session, pass_on())  # type: ignore[arg-type]
        writes = [request.name for request in seen if request is not ATOMIC]
        if len(writes) > 1 and seen[0] is not ATOMIC:
            loose[operation.__name__] = writes
        return answer

    monkeypatch.setattr(access, "run", watched)
    tell(timed, "q", clock)
    assert set(loose) <= {
        "find",  # reads only
        "discover_lanes",  # adds lanes, each by itself
        "add_lanes",  # the same
        "counts",  # reads, and lanes
        "settle",  # an acknowledgement that found nothing looks for its own trace
        "enqueue_many",  # the bulk load is one statement; the ring comes after it
        "run_now",  # the ring comes after it
        "resume",  # the same
    }
    assert not [name for name in loose.get("enqueue_many", []) if name not in ("copy_jobs", "enqueue_batch", "ring")]


def test_the_case_that_derives_a_status_is_the_same_everywhere() -> None:
    found = set()
    for dialect in DIALECTS:
        schema = files("dibs.store").joinpath(f"migrations/{dialect}/0001_core.sql").read_text(encoding="utf-8")
        for text in (_source(dialect), schema):
            for match in re.finditer(r"case when (?:\w\.)?lease_until.*?end", text, re.DOTALL):
                words = " ".join(re.sub(r"\b[jh]\.", "", match[0]).split())
                # SQLite's own clock, which only the view reads, knows milliseconds.
                days = re.escape("round((julianday('now') - 2440587.5) * 86400000)")
                now = rf" <= statement_timestamp\(\)| <= utc_timestamp\(6\)| / 1000 <= cast\({days} as integer\)"
                found.add(re.sub(now, " <= :now", words))
    assert len(found) == 1
    told = set(re.findall(r"'(\w+)'", found.pop()))
    assert {Status(word) for word in told} == (WAITING | HELD)


def test_the_outcomes_that_the_history_admits_are_the_final_statuses() -> None:
    for dialect in DIALECTS:
        schema = files("dibs.store").joinpath(f"migrations/{dialect}/0001_core.sql").read_text(encoding="utf-8")
        [outcomes] = re.findall(r"check \(outcome in \(([^)]*)\)\)", schema)
        assert {Status(word) for word in re.findall(r"'(\w+)'", outcomes)} == FINAL


def _moves(jobs: Dibs) -> dict[str, Callable[[str], object]]:
    """What an operator or a clock can do to any job; a holder's verbs are told apart by the token."""
    return {
        "cancel": jobs.cancel,
        "discard": jobs.discard,
        "retry": jobs.retry,
        "run_now": jobs.run_now,
        "reschedule": lambda job_id: jobs.reschedule(job_id, run_at=jobs.clock() + (jobs.clock() - jobs.clock())),
        "postpone": lambda job_id: jobs.reschedule(job_id, run_at="2200-01-01T00:00:00Z"),
    }


@pytest.mark.parametrize("verb", ["cancel", "discard", "retry", "run_now", "reschedule", "postpone"])
def test_statements_move_jobs_along_the_table_of_transitions_only(dibs: Dibs, verb: str) -> None:
    made = one_of_each(dibs)
    for status, job_id in made.items():
        _moves(dibs)[verb](job_id)
        after = dibs.get(job_id).status
        assert after == status or after in TRANSITIONS[Status(status)], (status, after)


def test_a_holders_verbs_move_jobs_along_the_table_of_transitions_only(timed: Dibs, clock: FakeClock) -> None:
    acts: list[Callable[[Any], object]] = [
        timed.ack,
        timed.heartbeat,
        lambda job: timed.nack(job, "no", 0),
        lambda job: timed.nack(job, "no", "1h"),
        lambda job: timed.snooze(job, 0),
        lambda job: timed.snooze(job, "1h"),
        lambda _job: (clock.advance("1h"), timed.reclaim()),
    ]
    seen: set[tuple[str, str]] = set()
    for beat in (False, True):
        for act in acts:
            for attempts in (1, 5):
                handle = timed.enqueue("mail", max_attempts=attempts)
                [job] = timed.dequeue()
                if beat:
                    timed.heartbeat(job)
                before = handle.status()
                act(job)
                after = handle.status()
                seen.add((before, after))
                assert after == before or after in TRANSITIONS[before], (before, after)
                timed.cancel(handle.id)
                clock.advance("2h")
                timed.reclaim()
                timed.cancel(handle.id)
    assert {after for before, after in seen if before == "running"} >= {"ready", "scheduled", "retrying", "dead"}


def test_arrays_of_any_text_come_back_as_they_were(postgres: Postgres) -> None:
    letters = st.characters(blacklist_characters="\x00", blacklist_categories=["Cs"])
    texts = st.lists(
        st.none() | st.text(letters, max_size=8) | st.sampled_from(["NULL", "null", "", ",", "{}", '"', "\\"])
    )

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts, st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)))
    def comes_back(words: list[Any], numbers: list[Any]) -> None:
        row = postgres.control.execute(
            "select cast(%s::text as text[]), cast(%s::text as bigint[])", (pg_array(words), pg_array(numbers))
        ).fetchone()
        assert row == (words, numbers)

    comes_back()


def test_arrays_as_json_come_back_as_they_were(sqlite: Database, dibs_on: Make) -> None:
    words = ["", "null", '"', "\\", "é\U0001f4ee", "\t\n", None, 2**53, -1]
    jobs = dibs_on(sqlite.url)
    with jobs.store.session() as (session, _):
        rows = session.connection.execute("select value from json_each(?)", (json_array(words),)).fetchall()
    assert [row[0] for row in rows] == words
