"""`dibs job retry|cancel|discard|run-now|reschedule`: act on jobs, by id or by filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, confirmed, option, pass_target, rehearse
from dibs.cli.kinds import MOMENT, SPAN, STATUS
from dibs.cli.names import complete_queue, complete_task, known_id, known_queue
from dibs.cli.problems import CONFLICT, NOT_FOUND, OK, PARTLY, problem
from dibs.cli.tables import state
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs

_PAGE = 500
_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
_WAITING = ("scheduled", "blocked", "ready", "retrying")
_LATER = ("scheduled", "retrying")
_FINAL = ("completed", "dead", "cancelled", "discarded")
_FILTERS = (
    option("--queue", key="option.queue_filter", metavar="NAME", shell_complete=complete_queue),
    option("--task", key="option.task_filter", metavar="NAME", shell_complete=complete_task),
)
_IDS = argument("ids", key="argument.jobs", metavar="[ID]...", nargs=-1)


class Action(NamedTuple):
    """What to do to jobs: the verb, the act, the states in which a named job allows it, and those a filter means."""

    verb: str
    act: Callable[..., int]
    able: Sequence[str]
    meant: Sequence[str]


def _bulk(function: Any) -> Any:
    """The arguments and options of an act on many jobs."""
    for decorate in (as_json, rehearse, confirmed, *reversed(_FILTERS), _IDS):
        function = decorate(function)
    return function


@command("job.retry", examples=(f"dibs job retry {_ID}", "dibs job retry --queue mail --status dead --yes"))
@option("--status", key="option.status_retry", type=STATUS, multiple=True, default=("dead",), show_default=True)
@_bulk
@pass_target
def retry(target: Target, ids: Sequence[str], status: Sequence[str], **rest: Any) -> int:
    """All attempts before them."""
    door = target.door()
    return _do(door, Action("retry", door.retry, (*_FINAL, *_LATER), tuple(status)), ids, rest)


@command("job.cancel", examples=(f"dibs job cancel {_ID}", "dibs job cancel --task send --dry-run"))
@_bulk
@pass_target
def cancel(target: Target, ids: Sequence[str], **rest: Any) -> int:
    """Only what nobody holds."""
    door = target.door()
    return _do(door, Action("cancel", door.cancel, _WAITING, _WAITING), ids, rest)


@command("job.discard", examples=(f"dibs job discard {_ID}", "dibs job discard --queue mail --yes"))
@_bulk
@pass_target
def discard(target: Target, ids: Sequence[str], **rest: Any) -> int:
    """Only what nobody holds."""
    door = target.door()
    return _do(door, Action("discard", door.discard, _WAITING, _WAITING), ids, rest)


@command("job.run-now", examples=(f"dibs job run-now {_ID}", "dibs job run-now --queue mail --yes"))
@_bulk
@pass_target
def run_now(target: Target, ids: Sequence[str], **rest: Any) -> int:
    """Only what waits for a later time."""
    door = target.door()
    return _do(door, Action("run-now", door.run_now, _LATER, _LATER), ids, rest)


@command("job.reschedule", examples=(f"dibs job reschedule {_ID} --in 2h",))
@option("--at", key="option.at", type=MOMENT)
@option("--in", "delay", key="option.in", type=SPAN)
@_bulk
@pass_target
def reschedule(target: Target, ids: Sequence[str], at: datetime | None, delay: str | None, **rest: Any) -> int:
    """To another time."""
    from dibs.errors import InvalidOption
    from dibs.model.duration import seconds

    if (at is None) == (delay is None):
        raise problem(InvalidOption, "at-or-in")
    door = target.door()
    due = at or door.clock() + timedelta(seconds=seconds(delay or 0))
    action = Action("reschedule", lambda *chosen: door.reschedule(*chosen, run_at=due), _WAITING, _WAITING)
    return _do(door, action, ids, rest)


def _do(door: Dibs, action: Action, ids: Sequence[str], rest: dict[str, Any]) -> int:
    from dibs.errors import InvalidOption

    filters = {"queue": rest["queue"], "task": rest["task"]}
    if ids and any(filters.values()):
        raise problem(InvalidOption, "ids-or-filter")
    known_queue(door, rest["queue"])
    if ids:
        return _do_to_named(door, action, list(dict.fromkeys(ids)), rest)
    if not any(filters.values()):
        raise problem(InvalidOption, "act-on-everything")
    return do_to_all(door, action, filters, rest)


def _do_to_named(door: Dibs, action: Action, ids: Sequence[str], rest: dict[str, Any]) -> int:
    """One after the other, so that each can say why not."""
    from dibs.errors import NotFound

    changed: list[str] = []
    refused: list[dict[str, str]] = []
    for given in ids:
        job_id: str = given
        try:
            job_id = known_id(door, given)
            refusal = _refusal(door, job_id, action, rest["dry_run"])
        except NotFound:
            refusal = _not_found(given)
        if refusal is None:
            changed.append(job_id)
        else:
            refused.append(refusal)
            output.note(say("act.refused", id=output.safe(given), reason=refusal["reason"]), "yellow")
    if rest["as_json"]:
        output.document({"changed": changed, "refused": refused, "dry_run": rest["dry_run"]})
    _summary(action.verb, len(changed), rest["dry_run"])
    if not refused:
        return OK
    if changed:
        return PARTLY
    return NOT_FOUND if all(item["code"] == "not-found" for item in refused) else CONFLICT


def _refusal(door: Dibs, job_id: str, action: Action, rehearsed: bool) -> dict[str, str] | None:
    """Act on a job; None if it worked (or would), else why not."""
    from dibs.errors import NotFound

    if not rehearsed and action.act(job_id) == 1:
        return None
    try:
        status = door.get(job_id).status.value
    except NotFound:
        return _not_found(job_id)
    if rehearsed and status in action.able:
        return None
    return {"id": job_id, "code": "wrong-status", "reason": say("act.wrong_status", status=state(status))}


def _not_found(job_id: str) -> dict[str, str]:
    return {"id": job_id, "code": "not-found", "reason": say("act.not_found")}


def do_to_all(door: Dibs, action: Action, filters: dict[str, Any], rest: dict[str, Any]) -> int:
    """Act on everything that fits, page by page, after asking."""
    wanted = {**filters, "status": action.meant}
    total = door.count(**wanted)
    changed = 0
    if total and not rest["dry_run"]:
        output.agreed(say("act.ask", verb=say(f"verb.{action.verb}"), count=total), rest["yes"])
        changed = _pages(door, action, wanted, total)
    if rest["as_json"]:
        output.document({"matched": total, "changed": changed, "dry_run": rest["dry_run"]})
    _summary(action.verb, total if rest["dry_run"] else changed, rest["dry_run"])
    return OK


def _pages(door: Dibs, action: Action, wanted: dict[str, Any], total: int) -> int:
    changed, cursor = 0, None
    with output.progress(say("act.progress"), total) as bar:
        while page := door.find(limit=_PAGE, cursor=cursor, **wanted):
            changed += action.act(*page)
            output.step(bar, len(page))
            cursor = page[-1]
    return changed


def _summary(verb: str, count: int, rehearsed: bool) -> None:
    tell = output.note if rehearsed or not count else output.done
    tell(say("act.would" if rehearsed else "act.did", verb=say(f"verb.{verb}"), count=count))
