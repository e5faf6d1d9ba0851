"""`dibs job list|show|logs`: look at jobs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, option, pass_target
from dibs.cli.kinds import STATUS, Whole
from dibs.cli.names import complete_queue, complete_task
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.model.job import AttemptError, JobRecord

_PAGE = 500


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
    wanted["status"] = wanted["status"] or None
    records = _records(target.door(), limit, wanted)
    cursor = records[-1].id if len(records) == limit else None
    if as_json:
        output.document({"jobs": records, "cursor": cursor})
        return
    titles = [say(key) for key in ("title.id", "title.task", "title.queue", "title.status")]
    titles += [say("title.attempts"), say("title.created"), say("title.error")]
    output.table(titles, [_row(record) for record in records], right=[4])
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
    record = target.door().get(job_id)
    if as_json:
        output.document(record)
        return
    output.pairs(_facts(record))
    if record.errors:
        output.line("")
        output.table(*_attempts(record.errors), right=[0])


@command("job.logs", examples=("dibs job logs 01890a5d-ac96-774b-bcce-b302099a8057",))
@argument("job_id", key="argument.job", metavar="ID")
@as_json
@pass_target
def logs(target: Target, job_id: str, as_json: bool) -> None:
    """What went wrong in each attempt, with its traceback."""
    record = target.door().get(job_id)
    if as_json:
        output.document(record.errors)
        return
    for error in record.errors:
        output.line(_headline(error))
        for text in (error.traceback or error.message).rstrip().splitlines():
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


def _row(record: JobRecord) -> tuple[object, ...]:
    attempts = f"{record.attempts}/{record.max_attempts}"
    error = (record.last_error or "").strip().splitlines()
    shown = error[0][: 60 if sys.stdout.isatty() else None] if error else ""
    created = output.distance(record.created_at)
    return record.id, record.task, record.queue, record.status.value, attempts, created, shown


def _facts(record: JobRecord) -> dict[str, object]:
    facts: dict[str, object] = {
        say("title.id"): record.id,
        say("title.task"): record.task,
        say("title.queue"): record.queue,
        say("title.status"): record.status.value,
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


def _attempts(errors: tuple[AttemptError, ...]) -> tuple[list[str], list[tuple[object, ...]]]:
    titles = [say(key) for key in ("title.attempt", "title.when", "title.kind", "title.error", "title.worker")]
    rows: list[tuple[object, ...]] = [
        (error.attempt, output.distance(error.at), error.kind, f"{error.type}: {error.message}", error.worker or "-")
        for error in errors
    ]
    return titles, rows


def _headline(error: AttemptError) -> str:
    worker = output.safe(error.worker or "-")
    return say("job.attempt", number=error.attempt, when=output.moment(error.at), kind=error.kind, worker=worker)
