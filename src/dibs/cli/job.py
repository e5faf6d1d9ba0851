"""`dibs job list|show|logs`: look at jobs."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, option, pass_target
from dibs.cli.kinds import STATUS, Whole
from dibs.cli.names import complete_queue, complete_task, known_id, known_queue
from dibs.cli.tables import Column, pairs, state, table
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.model.job import AttemptError, JobRecord

_PAGE = 500
_OURS = re.compile(
    r'^  File "[^"\n]*[/\\]dibs[/\\](?:worker|task|door|store)[/\\]\w+\.py", line .*\n(?:    .*\n)*', re.MULTILINE
)
"""A frame of a traceback, with the lines of code below it."""


@command("job.list", examples=("dibs job list --status dead --queue mail", "dibs job list --task send --json"))
@option("--queue", key="option.queue_filter", metavar="NAME", shell_complete=complete_queue)
@option("--task", key="option.task_filter", metavar="NAME", shell_complete=complete_task)
@option("--status", key="option.status_filter", type=STATUS, multiple=True)
@option("--limit", key="option.limit", type=Whole(1, 1_000_000), default=50, show_default=True)
@option("--cursor", key="option.cursor", metavar="ID")
@as_json
@pass_target
def list_jobs(target: Target, as_json: bool, limit: int, **wanted: Any) -> None:
    """Newest first."""
    door = target.door()
    known_queue(door, wanted["queue"])
    wanted["status"] = wanted["status"] or None
    wanted["cursor"] = wanted["cursor"] and known_id(door, wanted["cursor"])
    records = _records(door, limit, wanted)
    cursor = records[-1].id if len(records) == limit else None
    if as_json:
        output.document({"jobs": [_plain(record) for record in records], "cursor": cursor})
        return
    table(_columns(), [_row(record) for record in records])
    if not records:
        output.note(say("job.none"))
    elif cursor:
        output.note(say("job.more", cursor=cursor))


@command("job.show", examples=("dibs job show 01890a5d-ac96-774b-bcce-b302099a8057",))
@argument("job_id", key="argument.job", metavar="ID")
@as_json
@pass_target
def show(target: Target, job_id: str, as_json: bool) -> None:
    """Everything that is known of one job."""
    door = target.door()
    record = door.get(known_id(door, job_id))
    if as_json:
        output.document(record)
        return
    pairs(_facts(record))
    rounds = _rounds(record.errors)
    for number, errors in enumerate(rounds, 1):
        output.line(f"\n{say('job.round', number=number)}" if len(rounds) > 1 else "")
        table(*_attempts(errors))


@command("job.logs", examples=("dibs job logs 01890a5d-ac96-774b-bcce-b302099a8057",))
@argument("job_id", key="argument.job", metavar="ID")
@as_json
@pass_target
def logs(target: Target, job_id: str, as_json: bool) -> None:
    """What went wrong in each attempt, with its traceback."""
    door = target.door()
    record = door.get(known_id(door, job_id))
    if as_json:
        output.document(record.errors)
        return
    rounds = _rounds(record.errors)
    for number, errors in enumerate(rounds, 1):
        if len(rounds) > 1:
            output.line(say("job.round", number=number))
        for error in errors:
            output.line(_headline(error))
            for text in _without_ours(error.traceback or error.message).rstrip().splitlines():
                output.line(f"    {output.safe(text)}")
    if not record.errors:
        output.note(say("job.no_errors"))


def _records(door: Dibs, limit: int, wanted: dict[str, Any]) -> list[JobRecord]:
    """Pages of jobs until there are enough."""
    found: list[JobRecord] = []
    cursor = wanted.pop("cursor")
    while len(found) < limit:
        asked = min(_PAGE, limit - len(found))
        page = door.list(limit=asked, cursor=cursor, **wanted)
        found += page
        if len(page) < asked:
            break
        cursor = page[-1].id
    return found


def _plain(record: JobRecord) -> dict[str, Any]:
    """A job of a list: the errors of its attempts are only read for one job at a time."""
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name != "errors"}


def _columns() -> list[Column]:
    return [
        Column(say("title.id")),
        Column(say("title.task"), 60),
        Column(say("title.queue"), 40),
        Column(say("title.status")),
        Column(say("title.attempts"), 30, right=True),
        Column(say("title.created"), 20),
        Column(say("title.error"), 50, cut=True),
    ]


def _row(record: JobRecord) -> tuple[object, ...]:
    attempts = f"{record.attempts}/{record.max_attempts}"
    error = "" if record.status == "completed" else (record.last_error or "").strip().partition("\n")[0]
    created = output.distance(record.created_at)
    return record.id, record.task, record.queue, state(record.status), attempts, created, error


def _facts(record: JobRecord) -> dict[str, object]:
    facts: dict[str, object] = {
        say("title.id"): record.id,
        say("title.task"): record.task,
        say("title.queue"): record.queue,
        say("title.status"): state(record.status),
        say("title.priority"): record.priority,
        say("title.attempts"): f"{record.attempts}/{record.max_attempts}",
        say("title.payload"): output.compact(record.payload),
    }
    optional = {
        say("title.result"): None if record.result is None else output.compact(record.result),
        say("title.unique_key"): record.unique_key,
        say("title.tags"): ", ".join(record.tags),
        say("title.crashes"): record.crashes,
        say("title.worker"): record.worker_id,
    }
    facts |= {name: value for name, value in optional.items() if value}
    moments = {
        say("title.created"): record.created_at,
        say("title.due"): record.available_at,
        say("title.started"): record.started_at or record.claimed_at,
        say("title.lease_until"): record.lease_until,
        say("title.finished"): record.finished_at,
    }
    return facts | {name: output.moment(when) for name, when in moments.items() if when is not None}


def _rounds(errors: tuple[AttemptError, ...]) -> list[list[AttemptError]]:
    """The failed attempts, cut where an operator's retry began to count from one again."""
    rounds: list[list[AttemptError]] = []
    last: AttemptError | None = None
    for error in errors:
        # An attempt that a shutdown has interrupted is made again under its number.
        if last is None or error.attempt < last.attempt or (error.attempt == last.attempt and last.kind != "shutdown"):
            rounds.append([])
        rounds[-1].append(error)
        last = error
    return rounds


def _attempts(errors: list[AttemptError]) -> tuple[list[Column], list[tuple[object, ...]]]:
    columns = [
        Column(say("title.attempt"), right=True),
        Column(say("title.when"), 20),
        Column(say("title.kind"), 50),
        Column(say("title.error"), cut=True),
        Column(say("title.worker"), 10),
    ]
    rows: list[tuple[object, ...]] = [
        (error.attempt, output.distance(error.at), error.kind, f"{error.type}: {error.message}", error.worker or "-")
        for error in errors
    ]
    return columns, rows


def _without_ours(trace: str) -> str:
    """A traceback without the frames of dibs itself, which lead from the worker to the handler."""
    return _OURS.sub("", trace)


def _headline(error: AttemptError) -> str:
    worker = output.safe(error.worker or "-")
    return say("job.attempt", number=error.attempt, when=output.moment(error.at), kind=error.kind, worker=worker)
