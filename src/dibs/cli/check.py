"""`dibs check`: is everything as it should be before the first job runs?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import click

from dibs.cli import output
from dibs.cli.grammar import as_json, command, pass_target
from dibs.cli.problems import OK, code_of, exit_code, words
from dibs.cli.target import Target
from dibs.errors import DibsError
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.cli.application import Found

SKEW = 2.0
"""Seconds by which this machine's clock may differ from the database's."""


class Finding(NamedTuple):
    """One thing that was looked at: `verdict` is ok, warning or failed."""

    name: str
    verdict: str
    detail: str
    code: str = ""
    remedy: str = ""
    exit: int = OK


@command("check", examples=("dibs check", "dibs check --app shop.jobs:jobs --json"))
@as_json
@pass_target
def check(target: Target, as_json: bool) -> int:
    """The first thing that fails gives the exit code."""
    findings = list(_findings(target))
    if as_json:
        keys = ("name", "verdict", "detail", "code", "remedy")
        output.document({"checks": [{key: getattr(item, key) for key in keys} for item in findings]})
    else:
        for item in findings:
            _show(item)
    return next((item.exit for item in findings if item.verdict == "failed"), OK)


def _show(item: Finding) -> None:
    marks = {"ok": ("ok", "green"), "warning": ("!!", "yellow"), "failed": ("XX", "red")}
    mark, colour = marks[item.verdict]
    import sys

    head = click.style(mark, fg=colour)
    names = {
        "settings": say("check.settings"),
        "application": say("check.application"),
        "tasks": say("check.tasks"),
        "database": say("check.database"),
        "schema": say("check.schema"),
        "clock": say("check.clock"),
        "workers": say("check.workers"),
    }
    click.echo(f"{head} {names[item.name]}: {item.detail}", color=output.coloured(sys.stdout))
    if item.remedy:
        click.echo(f"   {item.remedy} [{item.code}]")


def _findings(target: Target) -> Iterator[Finding]:
    yield from _settings()
    found: Found | None = None
    try:
        found = target.application()
        yield Finding("application", "ok", f"{found.name} ({found.origin})")
        yield _tasks(found.dibs)
    except DibsError as error:
        yield _failed("application" if found is None else "tasks", error)
    try:
        door = found.dibs if found else target.door(create=True, imports=False)
        if not door.exists:
            yield _warning("database", "file-missing", url=door.url)
            return
        yield from _database(door)
    except DibsError as error:
        yield _failed("database", error)


def _settings() -> Iterator[Finding]:
    from dibs.cli.config import unknown
    from dibs.cli.configured import trouble
    from dibs.door import settings

    for name in settings.DEFAULTS:
        if error := trouble(name):
            yield _failed("settings", error)
    for values in unknown():
        yield _warning("settings", "unknown-setting", **values)


def _tasks(dibs: Dibs) -> Finding:
    """Every signature is compiled, as a worker would at the first job."""
    for task in dibs.tasks:
        _ = task.signature
    if not len(dibs.tasks):
        return _warning("tasks", "no-tasks", app="-")
    return Finding("tasks", "ok", ", ".join(sorted(f"{task.name} ({task.options.queue})" for task in dibs.tasks)))


def _database(door: Dibs) -> Iterator[Finding]:
    door.schema()
    yield Finding("database", "ok", door.url)
    try:
        door.check_schema()
    except DibsError as error:
        yield _failed("schema", error)
        return
    yield Finding("schema", "ok", say("db.current"))
    if door.behind_pooler():
        yield _warning("database", "pooler")
    yield _clock(door)
    yield from _workers(door)


def _clock(door: Dibs) -> Finding:
    before = datetime.now(UTC)
    theirs = door.clock()
    after = datetime.now(UTC)
    skew = (theirs - before - (after - before) / 2).total_seconds()
    if abs(skew) > SKEW + (after - before).total_seconds():
        return _warning("clock", "clock-skew", skew=output.span(abs(skew)))
    return Finding("clock", "ok", say("check.clock_ok"))


def _workers(door: Dibs) -> Iterator[Finding]:
    from dibs.cli.serving import lost, serving

    workers = [worker for worker in door.workers() if not lost(worker)]
    unserved = sorted({task.options.queue for task in door.tasks if not serving(door, task.options.queue)})
    versions = sorted({worker.version for worker in workers})
    if len(versions) > 1:
        yield _warning("workers", "mixed-versions", versions=", ".join(versions))
    for worker in filter(lost, door.workers()):
        yield _warning("workers", "worker-lost", worker=worker.id, silent=output.span(worker.silent_for))
    if unserved:
        yield _warning("workers", "no-worker", queue=", ".join(unserved))
    elif workers:
        yield Finding("workers", "ok", ", ".join(worker.id for worker in workers))


def _warning(name: str, code: str, /, **values: object) -> Finding:
    return Finding(name, "warning", say(f"error.{code}.cause", **values), code, say(f"error.{code}.remedy", **values))


def _failed(name: str, error: DibsError) -> Finding:
    from dibs.cli.plainer import plainer

    plain = plainer(error)
    cause, remedy = words(plain)
    return Finding(name, "failed", cause, code_of(plain), remedy, exit_code(plain))
