"""`dibs worker run`: run jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, command, option, pass_target
from dibs.cli.kinds import SPAN, OneOf, Whole
from dibs.cli.names import complete_queue
from dibs.cli.problems import problem
from dibs.cli.queue import ENDED
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs.cli.application import Found
    from dibs.worker.tally import Tally

PORT = Whole(0, 65_535)


@command(
    "worker.run",
    examples=("dibs worker run app:jobs --queues mail:10,default", "dibs worker run --processes 2 --until-empty"),
)
@argument("application", key="argument.app", metavar="[APP]", required=False)
@option("--queues", key="option.queues", metavar="NAME[:LIMIT],...", shell_complete=complete_queue)
@option("--concurrency", key="option.concurrency", type=Whole(1, 10_000))
@option("--processes", key="option.processes", type=Whole(1, 1_000))
@option("--until-empty", key="option.until_empty", is_flag=True)
@option("--grace", key="option.grace", type=SPAN)
@option("--lease", key="option.lease", type=SPAN)
@option("--poll-only", key="option.poll_only", is_flag=True)
@option("--name", key="option.worker_name", metavar="NAME")
@option("--health-port", key="option.health_port", type=PORT)
@option("--health-host", key="option.health_host", default="127.0.0.1", show_default=True)
@option("--log-level", key="option.log_level", type=OneOf(("debug", "info", "warning", "error")))
@pass_target
def run(target: Target, application: str | None, **given: Any) -> int:
    """Until a signal: the first asks, the second forces."""
    from dibs.cli.configured import whole
    from dibs.worker.supervisor import LEASH

    target.app = application or target.app
    processes = whole("processes", given.pop("processes"), 1, 1_000)
    found = target.application()
    _check(found, given)
    if LEASH not in os.environ:
        introduce(found)
    if processes > 1:
        return _supervise(target, found, processes, given)
    return work(found, given)


def work(found: Found, given: dict[str, Any]) -> int:
    """Run one worker in this process, until it is told to stop."""
    from dibs.cli.configured import log_to_terminal
    from dibs.cli.signals import signals_told
    from dibs.worker.signals import stopped_by_signals
    from dibs.worker.supervisor import LEASH

    log_to_terminal(given.get("log_level"))
    options = _options(given)
    worker = found.dibs.worker(queues_of(given.get("queues")), **options)
    with ExitStack() as stack:
        if LEASH not in os.environ:  # else the parent says it, once for all
            stack.enter_context(signals_told(options["grace"]))
        stack.enter_context(stopped_by_signals(worker.stop, worker.stop))  # also before `run` listens
        if given.get("health_port"):
            stack.enter_context(_health(worker.health, given))
        worker.run(until_empty=bool(given.get("until_empty")))
    output.done(say("worker.stopped", counts=_counts(worker.settler.outcomes)))
    return 0


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a worker, each from its flag or else from where settings come from."""
    from dibs.cli.configured import span, whole

    return {
        "concurrency": whole("concurrency", given.get("concurrency"), 1, 10_000),
        "grace": span("grace", given.get("grace")),
        "lease": given.get("lease"),
        "name": given.get("name"),
        "wakeups": "poll" if given.get("poll_only") else "auto",
    }


def _counts(tally: Tally) -> str:
    """How many attempts came to which outcome."""
    from dibs.worker.tally import HANDED_BACK, SNOOZED

    own = {SNOOZED: say("worker.snoozed"), HANDED_BACK: say("worker.handed_back")}
    names = [name for name in (*ENDED, "retrying", *own) if tally[name]]
    words = [say("worker.count", number=tally[name], word=own.get(name) or say(f"status.{name}")) for name in names]
    return say("worker.gap").join(words) or say("worker.nothing")


def introduce(found: Found) -> None:
    """Say what will be run, and where."""
    names = ", ".join(sorted(task.name for task in found.dibs.tasks))
    output.note(say("worker.starts", app=found.name, url=found.dibs.url, count=len(found.dibs.tasks), names=names))


def queues_of(text: str | None) -> dict[str, int] | list[str] | None:
    """`mail:10,default` as the queues of a worker, and how many jobs of each may run at once."""
    from dibs.cli.configured import value
    from dibs.errors import InvalidOption
    from dibs.model.names import check_name

    given = value("queues", text)
    if given is None:
        return None
    if not isinstance(given, (str, list)):
        raise problem(InvalidOption, "bad-queues", word=given)
    words = given.split(",") if isinstance(given, str) else [str(word) for word in given]
    names: dict[str, int | None] = {}
    for word in words:
        name, colon, limit = word.strip().partition(":")
        if colon and not (limit.isdecimal() and 1 <= int(limit) <= 10_000):
            raise problem(InvalidOption, "bad-queues", word=word)
        names[check_name("queue", name)] = int(limit) if colon else None
    caps = {name: limit for name, limit in names.items() if limit is not None}
    return caps if len(caps) == len(names) else _mixed(names, caps)


def _mixed(names: dict[str, int | None], caps: dict[str, int]) -> Any:
    """Some queues with a limit and some without: those without may use every slot."""
    return {name: caps.get(name, 10_000) for name in names} if caps else list(names)


def _check(found: Found, given: dict[str, Any]) -> None:
    """Refuse now what every process would refuse later; say what cannot be meant."""
    from dibs.errors import UnknownTask
    from dibs.worker.options import check

    if not len(found.dibs.tasks):
        raise problem(UnknownTask, "no-tasks", app=found.name)
    queues = queues_of(given["queues"])
    check(queues, _options(given))
    used = {task.options.queue for task in found.dibs.tasks}
    for name in queues or ():
        if name not in used and name not in {state.name for state in found.dibs.queues()}:
            output.warn("queue-without-jobs", queue=name, names=", ".join(sorted(used)))


def _supervise(target: Target, found: Found, count: int, given: dict[str, Any]) -> int:
    """Start the same command in several processes, each with one worker; the health of all is told by this one."""
    from dibs.cli.configured import log_to_terminal, span
    from dibs.cli.signals import signals_told
    from dibs.model.duration import seconds
    from dibs.worker.supervisor import Supervisor

    log_to_terminal(given["log_level"])
    if target.url:
        os.environ["DIBS_URL"] = target.url
    output.note(say("worker.supervises", count=count))
    found.dibs.close()
    alone = ["--processes", "1", "--health-port", "0"]  # what is written last counts
    again, grace = [sys.executable, "-m", "dibs", *sys.argv[1:], *alone], span("grace", given["grace"])
    supervisor = Supervisor(again, count, grace=seconds(grace), until_empty=given["until_empty"])
    with ExitStack() as stack:
        stack.enter_context(signals_told(grace))
        if given["health_port"]:
            stack.enter_context(_health(supervisor.health, given))
        return supervisor.run()


def _health(health: Callable[[], dict[str, float]], given: dict[str, Any]) -> AbstractContextManager[None]:
    from dibs.cli.health_port import serving

    return serving(health, given["health_host"], given["health_port"])
