"""`dibs enqueue`: put a job in."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, option, pass_target
from dibs.cli.kinds import MOMENT, PRIORITY, SPAN, OneOf, Whole
from dibs.cli.names import complete_queue, complete_task
from dibs.cli.problems import OK, problem
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs, Handle
    from dibs.task.registry import Definition


@command(
    "enqueue",
    examples=(
        "dibs enqueue hello name=Ada --wait",
        "dibs enqueue resize image=cat.png sizes:=[100,200] --in 5m --queue media",
        "dibs enqueue report --at '2027-01-04 09:00 Asia/Shanghai' --unique report-2027-01-04",
    ),
)
@argument("task", key="argument.task", metavar="TASK", shell_complete=complete_task)
@argument("words", key="argument.words", metavar="[KEY=TEXT|KEY:=JSON]...", nargs=-1)
@option("--in", "delay", key="option.in", type=SPAN)
@option("--at", "run_at", key="option.at", type=MOMENT)
@option("--queue", key="option.queue", metavar="NAME", shell_complete=complete_queue)
@option("--priority", key="option.priority", type=PRIORITY)
@option("--unique", key="option.unique", metavar="KEY")
@option("--on-conflict", key="option.on_conflict", type=OneOf(("existing", "skip", "replace", "raise")))
@option("--max-attempts", key="option.max_attempts", type=Whole(1, 1_000))
@option("--job-timeout", "timeout", key="option.job_timeout", type=SPAN)
@option("--tag", "tags", key="option.tag", multiple=True)
@option("--unregistered", key="option.unregistered", is_flag=True)
@option("--wait", key="option.wait", is_flag=True)
@option("--wait-timeout", key="option.timeout", type=SPAN)
@as_json
@pass_target
def enqueue(target: Target, task: str, words: Sequence[str], **given: Any) -> int:
    """Store a job; with --wait, wait for its result."""
    from dibs.cli.arguments import payload

    wait = given.pop("wait")
    patience, as_json = given.pop("wait_timeout"), given.pop("as_json")
    door, definition = _task(target, task, given.pop("unregistered"))
    options = {name: value for name, value in given.items() if value not in (None, ())}
    handle = door.enqueue(task, payload(words, definition), **options)
    if not wait:
        _tell(handle, task, as_json)
        return OK
    from dibs.cli.job_wait import wait_and_tell

    return wait_and_tell(door, handle.id, patience, as_json)


def _task(target: Target, name: str, unregistered: bool) -> tuple[Dibs, Definition | None]:
    """The database, and the task as the application defines it; unregistered, it is stored by name, unchecked."""
    from dibs.errors import AppNotFound, UnknownTask

    if unregistered:
        return target.door(create=True), None
    try:
        found = target.application()
    except AppNotFound as error:
        if error.data.get("code") != "app-not-found":
            raise
        raise AppNotFound(error.cause, f"{error.remedy}\n  {say('enqueue.by_name')}", **error.data) from error
    definition = found.dibs.tasks.find(name)
    if definition is None:
        known = sorted(task.name for task in found.dibs.tasks)
        near = difflib.get_close_matches(name, known, 3) or known
        raise problem(UnknownTask, "task-not-registered", task=name, app=found.name, names=", ".join(near) or "-")
    return found.dibs, definition


def _tell(handle: Handle[Any], task: str, as_json: bool) -> None:
    if as_json:
        output.document({"id": handle.id, "created": handle.created, "replaced": handle.replaced})
    else:
        output.line(handle.id)
    if handle.created:
        output.done(say("enqueue.created", task=task))
    elif handle.replaced:
        output.done(say("enqueue.replaced", task=task))
    else:
        output.note(say("enqueue.existing", task=task), "yellow")
