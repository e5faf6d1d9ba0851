"""`dibs job wait|watch`: follow a job to its end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, option, pass_target
from dibs.cli.kinds import SPAN
from dibs.cli.names import known_id
from dibs.cli.problems import FAILED, OK
from dibs.cli.serving import warn_without_worker
from dibs.cli.tables import state
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.model.job import JobRecord

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5


@command("job.wait", examples=("dibs job wait 01890a5d-ac96-774b-bcce-b302099a8057 --timeout 5m",))
@argument("job_id", key="argument.job", metavar="ID")
@option("--timeout", key="option.timeout", type=SPAN)
@as_json
@pass_target
def wait(target: Target, job_id: str, timeout: str | None, as_json: bool) -> int:
    """Exit code 0 if it completed, 1 if it ended in another way or not in time."""
    door = target.door()
    return wait_and_tell(door, known_id(door, job_id), timeout, as_json)


@command("job.watch", examples=("dibs job watch 01890a5d-ac96-774b-bcce-b302099a8057",))
@argument("job_id", key="argument.job", metavar="ID")
@option("--timeout", key="option.timeout", type=SPAN)
@option("--jsonl", "as_lines", key="option.jsonl", is_flag=True)
@pass_target
def watch(target: Target, job_id: str, timeout: str | None, as_lines: bool) -> int:
    """One line for each change, until the job has ended."""
    door = target.door()
    record = last = None
    for record in _looks(door, known_id(door, job_id), timeout):
        seen = (record.status, record.attempts, record.token)
        if seen == last:
            continue
        last = seen
        if as_lines:
            output.document(record, lines=True)
        else:
            attempts = f"{record.attempts}/{record.max_attempts}"
            error = output.safe(record.last_error or "") if record.status in ("retrying", "dead") else ""
            output.line(f"{state(record.status):<10} {attempts}  {error}".rstrip())
    return OK if record is not None and record.status == "completed" else FAILED


def wait_and_tell(door: Dibs, job_id: str, timeout: str | None, as_json: bool) -> int:
    """Wait for a job and print its result."""
    final = deque(_looks(door, job_id, timeout), maxlen=1)[0]
    if as_json:
        output.document(final)
    elif final.status == "completed":
        output.line(output.compact(final.result))
    if final.status == "completed":
        output.done(say("job.completed", task=final.task, id=final.id))
        return OK
    error = output.safe(final.last_error or "-")
    output.note(say("job.ended", task=final.task, id=final.id, status=state(final.status), error=error), "red")
    if final.errors:
        output.note(say("job.read_why", id=final.id))
    return FAILED


def _looks(door: Dibs, job_id: str, timeout: str | None) -> Iterator[JobRecord]:
    """The job again and again, less and less often, until it has ended. Says so if nobody works for it."""
    from dibs.cli.problems import problem
    from dibs.errors import ResultTimeout
    from dibs.model.duration import seconds

    started, pause, warned = time.monotonic(), _FIRST_PAUSE, False
    end = None if timeout is None else started + seconds(timeout)
    while True:
        record = door.get(job_id)
        yield record
        if record.status.final:
            return
        over = end is not None and time.monotonic() >= end
        if not warned and (over or time.monotonic() > started + 1):
            warned = True
            warn_without_worker(door, record.queue)
        if over:
            raise problem(ResultTimeout, "still-waiting", id=job_id, status=state(record.status), timeout=timeout)
        time.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))
        pause = min(pause * 1.3, _LONGEST_PAUSE)
