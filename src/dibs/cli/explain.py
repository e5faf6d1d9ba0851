"""`dibs explain`: what an error code means, what causes it and what to do about it. Needs no database."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command
from dibs.cli.problems import CONFLICT, FAILED, NOT_FOUND, SCHEMA, UNREACHABLE, USAGE, nearest, problem
from dibs.messages import catalogue, language, say

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

WARNING = 0
GROUPS: dict[str, dict[str, int]] = {
    "application": {
        "app-not-found": NOT_FOUND,
        "app-not-importable": NOT_FOUND,
        "app-broken": NOT_FOUND,
        "app-no-attribute": NOT_FOUND,
        "app-unclear": NOT_FOUND,
        "url-conflict": CONFLICT,
        "no-tasks": NOT_FOUND,
        "task-not-registered": NOT_FOUND,
        "unknown-task": NOT_FOUND,
    },
    "database": {
        "invalid-url": USAGE,
        "url-with-driver": USAGE,
        "driver-missing": UNREACHABLE,
        "database-unreachable": UNREACHABLE,
        "login-refused": UNREACHABLE,
        "database-missing": UNREACHABLE,
        "file-missing": UNREACHABLE,
        "no-rights": FAILED,
        "database-too-old": FAILED,
        "wrong-database": FAILED,
        "pooler": WARNING,
        "clock-skew": WARNING,
        "database-error": FAILED,
    },
    "tables": {
        "schema-outdated": SCHEMA,
        "schema-too-new": SCHEMA,
    },
    "values": {
        "invalid-input": USAGE,
        "invalid-name": USAGE,
        "invalid-option": USAGE,
        "naive-datetime": USAGE,
        "naive-time": USAGE,
        "invalid-payload": USAGE,
        "payload-too-large": USAGE,
        "bad-argument": USAGE,
        "bad-json": USAGE,
        "bad-setting": USAGE,
        "bad-duration": USAGE,
        "bad-log-level": USAGE,
        "bad-queues": USAGE,
        "bad-backoff": USAGE,
        "unknown-setting": WARNING,
        "nothing-to-set": USAGE,
        "at-or-in": USAGE,
        "ids-or-filter": USAGE,
        "act-on-everything": USAGE,
        "json-stream": USAGE,
    },
    "jobs": {
        "not-found": NOT_FOUND,
        "bad-id": USAGE,
        "no-such-id": NOT_FOUND,
        "ambiguous-id": USAGE,
        "conflict": CONFLICT,
        "duplicate": CONFLICT,
        "wrong-status": CONFLICT,
        "lease-lost": CONFLICT,
        "job-failed": FAILED,
        "result-timeout": FAILED,
        "still-waiting": FAILED,
        "unknown-queue": NOT_FOUND,
        "queue-without-jobs": WARNING,
        "no-worker": WARNING,
        "worker-lost": WARNING,
        "queue-paused": WARNING,
        "mixed-versions": WARNING,
        "bench-runs": CONFLICT,
        "demo-too-slow": FAILED,
    },
    "terminal": {
        "confirmation-needed": USAGE,
        "terminal-needed": FAILED,
        "unknown-code": NOT_FOUND,
        "cannot-write": FAILED,
        "port-taken": FAILED,
    },
    "rest": {
        "dibs-error": FAILED,
        "unexpected": FAILED,
    },
}
"""Every code with the exit code of the command that ends with it, in the order of docs/errors.md."""


def _complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(code) for code in exits() if code.startswith(typed)]


@command("explain", examples=("dibs explain no-worker", "dibs explain"), app=False, url=False)
@argument("code", key="argument.code", metavar="[CODE]", required=False, shell_complete=_complete)
@as_json
def explain(code: str | None, as_json: bool) -> None:
    """One code, or the list of all."""
    from dibs.errors import NotFound

    known = exits()
    if code is not None and code not in known:
        raise problem(NotFound, "unknown-code", given=code, names=", ".join(nearest(code, known)) or "-")
    if as_json:
        pages = [_plain(item) for item in ([code] if code else known)]
        output.document(pages[0] if code else {"codes": pages})
    elif code:
        _show(code)
    else:
        _list()


def exits() -> dict[str, int]:
    """Every code with its exit code."""
    return {code: exit_code for group in GROUPS.values() for code, exit_code in group.items()}


def text(code: str, part: str, lang: str | None = None) -> str:
    """The cause, remedy or meaning of a code, with the names of its values where they will stand."""
    pieces = string.Formatter().parse(catalogue(lang or language())[f"error.{code}.{part}"])
    return "".join(words + _value(name, form) for words, name, form, _ in pieces)


def _value(name: str | None, form: str | None) -> str:
    if name is None:
        return ""
    _, choice, many = (form or "").partition("|")
    return many if choice else f"{{{name}}}"


def _plain(code: str) -> dict[str, object]:
    parts = {part: text(code, part) for part in ("cause", "remedy", "meaning")}
    return {"code": code, **parts, "exit_code": exits()[code]}


def _show(code: str) -> None:
    from dibs.cli.tables import pairs

    status = exits()[code]
    pairs(
        {
            say("title.code"): code,
            say("title.cause"): text(code, "cause"),
            say("title.remedy"): text(code, "remedy"),
            say("title.meaning"): text(code, "meaning"),
            say("title.exit_code"): status if status != WARNING else say("explain.warning"),
        }
    )


def _list() -> None:
    from dibs.cli.tables import Column, table

    columns = [Column(say("title.code")), Column(say("title.cause"), cut=True)]
    for place, (group, codes) in enumerate(GROUPS.items()):
        output.line(("\n" if place else "") + say(f"explain.{group}"))
        table(columns, [(code, text(code, "cause")) for code in codes])
    output.note(say("explain.next"))
