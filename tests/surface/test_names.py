"""The public face is a contract: programs outside the project call these names with these parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import dibs
from dibs import Backoff, Dibs, Handle, Job, Priority, Status, Task, current_job, errors
from dibs.door.dibs import TaskOptions
from dibs.door.task import TaskBase, Using
from dibs.model.options import EnqueueOptions
from dibs.model.settings import QueueOptions
from dibs.worker import Worker
from dibs.worker.options import WorkerOptions

VERBS = {
    "task": ["function", "options"],
    "register": ["handlers", "options"],
    "enqueue": ["task", "payload", "connection", "options"],
    "enqueue_many": ["jobs", "connection"],
    "job": ["task", "payload", "options"],
    "worker": ["queues", "options"],
    "dequeue": ["queues", "tasks", "limit", "lease", "worker", "wait"],
    "ack": ["job", "result"],
    "nack": ["job", "error", "retry_in"],
    "heartbeat": ["job", "extend"],
    "snooze": ["job", "delay"],
    "ack_many": ["jobs"],
    "nack_many": ["jobs", "retry_in"],
    "heartbeat_many": ["jobs", "extend"],
    "snooze_many": ["jobs", "delay"],
    "reclaim": ["limit"],
    "find": ["queue", "task", "status", "limit", "cursor"],
    "count": ["queue", "task", "status"],
    "count_prunable": ["queue", "older_than"],
    "migrate": [],
    "schema": [],
    "schema_script": ["after"],
    "clock": [],
    "behind_pooler": [],
    "check_schema": [],
    "get": ["job_id"],
    "list": ["queue", "task", "status", "limit", "cursor"],
    "cancel": ["ids", "queue", "task"],
    "discard": ["ids", "queue", "task"],
    "retry": ["ids", "queue", "task", "status"],
    "run_now": ["ids"],
    "reschedule": ["ids", "run_at"],
    "pause": ["queue", "reason"],
    "resume": ["queue"],
    "configure": ["queue", "options"],
    "queues": [],
    "workers": [],
    "stats": ["span"],
    "prune": ["queue", "older_than"],
    "close": [],
}
"""Verbs of `Dibs` with the parameters a caller may name."""

WITHOUT_ASYNC_FORM = {"task", "register", "job", "worker", "schema_script"}
"""These touch no database."""

HANDLE = {"status": [], "result": ["timeout"], "cancel": [], "retry": []}
NOT_YET = {
    Dibs: {"schedule": 3, "chain": 3, "edit": 3, "why": 3, "asgi": 5, "failures": 4, "doctor": 3},
    Handle: {"why": 3, "events": 4},
    dibs: {"chain": 3, "group": 3},
    type(current_job): {},
}
"""Names of later parts, with the part that brings them: when one appears, it moves up from here."""


def _parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_of_the_door_has_the_parameters_promised(verb: str) -> None:
    assert _parameters(getattr(Dibs, verb)) == VERBS[verb]


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - WITHOUT_ASYNC_FORM))
def test_a_verb_has_an_async_form_with_the_same_parameters(verb: str) -> None:
    sync, twin = getattr(Dibs, verb), getattr(Dibs, f"a{verb}")
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin).parameters == inspect.signature(sync).parameters
    assert inspect.signature(twin).return_annotation == inspect.signature(sync).return_annotation


@pytest.mark.parametrize("verb", HANDLE)
def test_a_handle_waits_and_acts_in_both_forms(verb: str) -> None:
    assert _parameters(getattr(Handle, verb)) == HANDLE[verb]
    twin = getattr(Handle, f"a{verb}")
    assert inspect.iscoroutinefunction(twin)
    assert _parameters(twin) == HANDLE[verb]


def test_every_public_verb_of_the_door_is_listed_here() -> None:
    public = {name for name in dir(Dibs) if not name.startswith("_") and callable(getattr(Dibs, name))}
    twins = {f"a{verb}" for verb in VERBS} & public
    assert public - twins == VERBS.keys(), "a new public verb is a promise: write it down above and in the guide"


def test_the_names_a_program_imports_are_these_only() -> None:
    assert set(dibs.__all__) == {
        "AsyncTask", "Backoff", "Cancel", "Dibs", "DibsError", "Discard", "Handle", "Job", "LeaseLost", "NewJob",
        "Priority", "Retry", "Snooze", "Status", "Task", "current_job",
    }  # fmt: skip


def test_names_of_later_parts_are_not_half_there() -> None:
    early = [f"{owner}.{name}" for owner, names in NOT_YET.items() for name in names if hasattr(owner, name)]
    assert not early, f"{early} exist now: move them from NOT_YET to the names promised"


def test_the_options_of_an_enqueue_are_these_everywhere() -> None:
    assert list(EnqueueOptions.__annotations__) == [
        "queue", "priority", "delay", "run_at", "at", "unique", "on_conflict", "max_attempts", "timeout", "backoff",
        "tags",
    ]  # fmt: skip


def test_the_options_of_tasks_queues_and_workers_are_these() -> None:
    assert set(TaskOptions.__annotations__) == {
        "name", "queue", "priority", "max_attempts", "timeout", "backoff", "max_crashes", "run_in",
    }  # fmt: skip
    assert set(QueueOptions.__annotations__) == {
        "lease", "timeout", "max_attempts", "max_crashes", "backoff", "retention",
    }  # fmt: skip
    assert set(WorkerOptions.__annotations__) == {
        "concurrency", "processes_limit", "lease", "grace", "wakeups", "poll", "batch", "name",
    }  # fmt: skip


def test_a_task_can_be_enqueued_in_every_way_promised() -> None:
    for kind in (TaskBase, Using):
        for name in ("job", "enqueue", "aenqueue"):
            assert callable(getattr(kind, name))
    assert _parameters(TaskBase.using) == ["connection", "options"]
    assert callable(Task.__call__)


def test_a_worker_can_be_run_stopped_and_asked_for_its_health() -> None:
    assert _parameters(Worker.run) == ["until_empty"]
    for name in ("stop", "health", "__enter__", "__exit__", "__aenter__", "__aexit__"):
        assert callable(getattr(Worker, name))


@pytest.mark.parametrize(
    "name",
    [
        "id", "queue", "task", "priority", "unique_key", "payload", "attempts", "max_attempts", "available_at",
        "lease_until", "locked_by", "token", "created_at",
    ],
)  # fmt: skip
def test_a_claimed_job_has_every_field_promised(name: str) -> None:
    assert hasattr(Job, name)


@pytest.mark.parametrize("name", ["id", "attempts", "payload", "cancelled", "log", "queue", "task"])
def test_a_handler_finds_these_on_its_current_job(name: str, tmp_path: object) -> None:
    jobs, seen = Dibs("sqlite://"), []

    @jobs.task
    def look() -> None:
        seen.append(hasattr(current_job(), name))

    look.enqueue()
    jobs.worker(concurrency=1).run(until_empty=True)
    jobs.close()
    assert seen == [True]


def test_priorities_are_the_three_numbers_promised() -> None:
    assert (Priority.EXPLICIT, Priority.DISCOVERED, Priority.BACKFILL) == (150, 100, 30)


def test_statuses_are_the_words_promised() -> None:
    assert [status.value for status in Status] == [
        "scheduled", "blocked", "ready", "claimed", "running", "retrying",
        "completed", "dead", "cancelled", "discarded",
    ]  # fmt: skip


def test_backoffs_take_the_parameters_promised() -> None:
    assert _parameters(Backoff.none) == []
    assert _parameters(Backoff.fixed)[:1] == ["delay"]
    assert _parameters(Backoff.polynomial)[:2] == ["power", "unit"]
    assert _parameters(Backoff.exponential) == ["base", "factor", "jitter", "cap"]
    assert str(Backoff.polynomial(2, "1m").delay(3)) == "0:09:00"


@pytest.mark.parametrize(
    "name",
    ["LeaseLost", "UnknownTask", "PayloadTooLarge", "Duplicate", "SchemaOutdated", "DatabaseUnreachable", "JobFailed"],
)
def test_errors_are_found_by_the_names_promised(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.DibsError)
