"""`dibs enqueue` and `dibs job`: on every database, as data and as words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dibs import Dibs
from dibs.model.job import AttemptError, JobRecord
from tests.support.databases import Database
from tests.surface.terminal import SHOP, Terminal, interrupt

NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
def terminal(database: Database, tmp_path: Path) -> Terminal:
    """A folder with a little application, on each database."""
    terminal = Terminal(tmp_path / "shop", database.url)
    terminal.write("jobs.py", SHOP)
    return terminal


@pytest.fixture
def door(terminal: Terminal) -> Iterator[Dibs]:
    """The same database, without the application."""
    door = Dibs(terminal.environment["DIBS_URL"])
    yield door
    door.close()


def test_enqueue_prints_the_id_and_nothing_else_as_data(terminal: Terminal, door: Dibs) -> None:
    said = terminal.run("enqueue", "greet", "name=Ada", "times=2")
    record = door.get(said.out.strip())
    assert (record.task, record.queue, record.payload) == ("greet", "mail", {"name": "Ada", "times": 2})
    assert "greet is enqueued" in said.err


def test_enqueue_takes_every_option(terminal: Terminal, door: Dibs) -> None:
    options = [
        "--queue",
        "slow",
        "--priority",
        "-5",
        "--unique",
        "u1",
        "--max-attempts",
        "7",
        "--tag",
        "a",
        "--tag",
        "b",
    ]
    made = terminal.run(
        "enqueue", "greet", 'name:="Ada"', "--in", "2h", "--job-timeout", "90s", *options, "--json"
    ).json
    assert made["created"] is True
    record = door.get(made["id"])
    assert (record.queue, record.priority, record.unique_key, record.max_attempts) == ("slow", -5, "u1", 7)
    assert record.tags == ("a", "b")
    assert record.available_at is not None
    assert timedelta(hours=1.9) < record.available_at - datetime.now(UTC) <= timedelta(hours=2)


def test_a_zero_or_an_empty_text_is_a_value_too(terminal: Terminal, door: Dibs) -> None:
    job_id = terminal.run("enqueue", "greet", "name=Ada", "--priority", "0").out.strip()
    assert door.get(job_id).priority == 0
    for empty in ("--unique", "--queue", "--tag"):
        assert "[invalid-" in terminal.run("enqueue", "greet", "name=Ada", empty, "", code=2).err
    assert door.count() == 1


def test_a_task_without_an_application_is_refused_unless_that_is_meant(tmp_path: Path) -> None:
    said = Terminal(tmp_path, "sqlite:///jobs.db").run("enqueue", "greet", "name=Ada", code=3).err
    assert "[app-not-found]" in said
    assert "--unregistered" in said


def test_a_job_is_named_by_the_beginning_of_its_id(terminal: Terminal, door: Dibs) -> None:
    one, two = (door.enqueue("greet", {"name": name}).id for name in "ab")
    shared = next(length for length in range(36) if one[length] != two[length])
    assert terminal.run("job", "show", one[: shared + 1].upper(), "--json").json["id"] == one
    assert terminal.run("job", "cancel", one[: shared + 1], "--json").json["changed"] == [one]
    assert "[ambiguous-id]" in terminal.run("job", "show", one[:4], code=2).err
    assert "[no-such-id]" in terminal.run("job", "show", "ffff", code=3).err
    assert "[bad-id]" in terminal.run("job", "show", one[:3], code=2).err


def test_a_key_that_is_taken_is_said_and_can_be_refused(terminal: Terminal) -> None:
    first = terminal.run("enqueue", "greet", "name=x", "--unique", "k", "--json").json
    again = terminal.run("enqueue", "greet", "name=y", "--unique", "k", "--json")
    assert again.json == {"id": first["id"], "created": False, "replaced": False}
    assert "already" in again.err
    replaced = terminal.run("enqueue", "greet", "name=z", "--unique", "k", "--on-conflict", "replace", "--json").json
    assert replaced == {"id": first["id"], "created": False, "replaced": True}
    refused = terminal.run("enqueue", "greet", "name=z", "--unique", "k", "--on-conflict", "raise", code=4)
    assert "[duplicate]" in refused.err


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2099-01-04T09:00+08:00", "2099-01-04T01:00:00Z"),
        ("2099-01-04 09:00 Asia/Shanghai", "2099-01-04T01:00:00Z"),
        ("2099-01-04T09:00[Asia/Shanghai]", "2099-01-04T01:00:00Z"),
        ("2099-01-04T09:00:30Z", "2099-01-04T09:00:30Z"),
    ],
)
def test_a_point_in_time_has_an_offset_or_a_zone(tmp_path: Path, given: str, instant: str) -> None:
    terminal = Terminal(tmp_path, "sqlite:///jobs.db")
    job_id = terminal.run("enqueue", "later", "--unregistered", "--at", given).out.strip()
    assert terminal.run("job", "show", job_id, "--json").json["available_at"] == instant


def test_unregistered_a_job_is_stored_by_its_name(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "sqlite:///jobs.db")
    job_id = terminal.run("enqueue", "anything", "n=1", "m:=1", "--unregistered").out.strip()
    assert terminal.run("job", "show", job_id, "--json").json["payload"] == {"n": "1", "m": 1}


def test_waiting_for_a_job_gives_its_result(terminal: Terminal) -> None:
    with terminal.start("worker", "run") as worker:
        said = terminal.run("enqueue", "greet", "name=Ada", "--wait")
        assert json.loads(said.out) == "hello Ada"
        assert "completed" in said.err
        failed = terminal.run("enqueue", "fail", "why=bad\x1b[31mluck", "--wait", code=1)
        assert failed.out == ""
        assert "dead" in failed.err
        assert "\x1b" not in failed.err
        whole = terminal.run("enqueue", "greet", "name=Ada", "--wait", "--json").json
        assert (whole["status"], whole["result"]) == ("completed", "hello Ada")
        assert interrupt(worker) == 0


def test_a_list_has_the_fields_of_the_record_and_pages(terminal: Terminal, door: Dibs) -> None:
    handles = door.enqueue_many([door.job("greet", {"name": str(n)}, queue="mail") for n in range(7)])
    first = terminal.run("job", "list", "--limit", 5, "--json").json
    assert [job["id"] for job in first["jobs"]] == [handle.id for handle in reversed(handles)][:5]
    assert first["cursor"] == handles[2].id
    assert list(first["jobs"][0]) == [field.name for field in fields(JobRecord) if field.name != "errors"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", first["jobs"][0]["created_at"])
    second = terminal.run("job", "list", "--limit", 5, "--cursor", first["cursor"], "--json").json
    assert [job["id"] for job in second["jobs"]] == [handles[1].id, handles[0].id]
    assert second["cursor"] is None


def test_a_list_longer_than_a_page_is_fetched_whole(terminal: Terminal, door: Dibs) -> None:
    door.enqueue_many([door.job("greet", {"name": "x"}) for _ in range(1_100)])
    assert len(terminal.run("job", "list", "--limit", 1_050, "--json").json["jobs"]) == 1_050
    assert len(terminal.run("job", "list", "--limit", 2_000).lines) == 1_101


def test_a_list_is_filtered_by_queue_task_and_status(terminal: Terminal, door: Dibs) -> None:
    kept = door.enqueue("greet", {"name": "x"}, queue="mail", delay="1h")
    door.enqueue("greet", {"name": "x"}, queue="mail")
    door.enqueue("fail", queue="mail", delay="1h")
    door.enqueue("greet", {"name": "x"}, queue="other", delay="1h")
    filters = ["--queue", "mail", "--task", "greet", "--status", "scheduled", "--status", "dead"]
    assert [job["id"] for job in terminal.run("job", "list", *filters, "--json").json["jobs"]] == [kept.id]
    assert kept.id in terminal.run("job", "list", *filters).out
    assert "No job fits" in terminal.run("job", "list", "--status", "dead").err


def test_a_failed_job_shows_its_attempts_and_its_traceback(terminal: Terminal) -> None:
    job_id = terminal.run("enqueue", "fail", "why=out of [red]luck").out.strip()
    terminal.run("worker", "run", "--until-empty")
    shown = terminal.run("job", "show", job_id)
    assert "dead" in shown.out
    assert "ValueError: out of [red]luck" in shown.out
    logs = terminal.run("job", "logs", job_id)
    assert "raise ValueError(why)" in logs.out
    errors = terminal.run("job", "logs", job_id, "--json").json
    assert list(errors[0]) == [field.name for field in fields(AttemptError)]
    assert terminal.run("job", "show", job_id, "--json").json["errors"] == errors


def test_a_job_that_has_not_failed_has_no_logs(terminal: Terminal, door: Dibs) -> None:
    job_id = door.enqueue("greet", {"name": "x"}).id
    said = terminal.run("job", "logs", job_id)
    assert (said.out, "No attempt" in said.err) == ("", True)


@pytest.mark.parametrize("verb", ["show", "logs", "wait", "watch", "retry", "cancel", "discard", "run-now"])
def test_a_job_that_is_not_there_is_exit_code_three(terminal: Terminal, verb: str) -> None:
    assert terminal.run("job", verb, NOBODY, code=3).out == ""


def test_what_is_no_id_is_a_mistake_in_the_usage(terminal: Terminal) -> None:
    assert "not a job id" in terminal.run("job", "show", "7", code=2).err


def test_a_job_is_watched_until_it_has_ended(terminal: Terminal, door: Dibs) -> None:
    job_id = door.enqueue("greet", {"name": "x"}).id
    with terminal.start("job", "watch", job_id) as watching, terminal.start("job", "watch", job_id, "--jsonl") as lines:
        assert watching.stdout is not None
        assert lines.stdout is not None
        assert watching.stdout.readline().split() == ["ready", "0/5"]
        assert json.loads(lines.stdout.readline())["status"] == "ready"
        terminal.run("worker", "run", "--until-empty")
        assert watching.wait(30) == 0
        assert lines.wait(30) == 0
        assert watching.stdout.read().splitlines()[-1].split()[0] == "completed"
        assert json.loads(lines.stdout.read().splitlines()[-1])["status"] == "completed"


def test_waiting_in_vain_says_why_nothing_happens(terminal: Terminal, door: Dibs) -> None:
    job_id = door.enqueue("greet", {"name": "x"}, queue="mail").id
    door.pause("mail", "holiday")
    said = terminal.run("job", "wait", job_id, "--timeout", "100ms", code=1)
    assert "No live worker serves queue mail" in said.err
    assert "Queue mail is paused (holiday)" in said.err
    assert "[still-waiting]" in said.err


def test_jobs_named_by_id_are_acted_on_one_by_one(terminal: Terminal, door: Dibs) -> None:
    one, two = (door.enqueue("greet", {"name": "x"}, delay="1h").id for _ in range(2))
    partly = terminal.run("job", "cancel", one, NOBODY, "--json", code=7)
    assert partly.json["changed"] == [one]
    assert [item["code"] for item in partly.json["refused"]] == ["not-found"]
    assert "there is no such job" in partly.err
    assert "it is cancelled" in terminal.run("job", "cancel", one, code=4).err
    assert terminal.run("job", "discard", one, two, "--json", code=7).json["changed"] == [two]
    assert [door.get(job_id).status for job_id in (one, two)] == ["cancelled", "discarded"]
    terminal.run("job", "retry", one, two)
    assert [door.get(job_id).status for job_id in (one, two)] == ["ready", "ready"]


def test_a_job_can_be_moved_in_time(terminal: Terminal, door: Dibs) -> None:
    job_id = door.enqueue("greet", {"name": "x"}, delay="1h").id
    terminal.run("job", "reschedule", job_id, "--at", "2099-01-04T09:00Z")
    assert door.get(job_id).available_at == datetime(2099, 1, 4, 9, tzinfo=UTC)
    terminal.run("job", "reschedule", job_id, "--in", "2h")
    moved = door.get(job_id).available_at
    assert moved is not None
    assert moved - datetime.now(UTC) < timedelta(hours=2)
    terminal.run("job", "run-now", job_id)
    assert door.get(job_id).status == "ready"
    assert "[at-or-in]" in terminal.run("job", "reschedule", job_id, code=2).err
    assert "it is ready" in terminal.run("job", "run-now", job_id, code=4).err


def test_all_jobs_that_fit_are_counted_before_they_are_touched(terminal: Terminal, door: Dibs) -> None:
    door.enqueue_many([door.job("greet", {"name": "x"}, queue="mail") for _ in range(700)])
    door.enqueue("greet", {"name": "x"}, queue="other")
    rehearsed = terminal.run("job", "cancel", "--queue", "mail", "--dry-run", "--json")
    assert rehearsed.json == {"matched": 700, "changed": 0, "dry_run": True}
    refused = terminal.run("job", "cancel", "--queue", "mail", code=2)
    assert "cancel 700 jobs?" in refused.err
    assert "[confirmation-needed]" in refused.err
    assert door.count(status="cancelled") == 0
    done = terminal.run("job", "cancel", "--queue", "mail", "--yes", "--json")
    assert done.json == {"matched": 700, "changed": 700, "dry_run": False}
    assert (door.count(status="cancelled"), door.count(status="ready")) == (700, 1)
    assert (
        terminal.run("job", "retry", "--task", "greet", "--status", "cancelled", "--yes", "--json").json["changed"]
        == 700
    )


def test_a_rehearsal_with_ids_changes_nothing(terminal: Terminal, door: Dibs) -> None:
    job_id = door.enqueue("greet", {"name": "x"}).id
    assert terminal.run("job", "discard", job_id, "--dry-run", "--json").json["changed"] == [job_id]
    assert terminal.run("job", "retry", job_id, "--dry-run", "--json", code=4).json["changed"] == []
    assert door.get(job_id).status == "ready"


def test_nothing_acts_on_every_job_by_leaving_something_out(terminal: Terminal, door: Dibs) -> None:
    job_id = door.enqueue("greet", {"name": "x"}).id
    for verb in ("retry", "cancel", "discard", "run-now"):
        assert "[act-on-everything]" in terminal.run("job", verb, "--yes", code=2).err
    assert "[ids-or-filter]" in terminal.run("job", "cancel", job_id, "--queue", "mail", code=2).err
    assert door.get(job_id).status == "ready"
