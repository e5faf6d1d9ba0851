"""Words and data on a terminal: data on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TextIO

import click

from dibs.messages import language, say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_PIPE_WIDTH = 100_000


def coloured(stream: TextIO) -> bool:
    """Whether to write colours there: NO_COLOR and FORCE_COLOR decide, else whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: TextIO) -> Console:
    """Rich on a stream; into a pipe it writes plain lines and cuts nothing off."""
    from rich.console import Console

    wide = None if stream.isatty() else _PIPE_WIDTH
    colours = coloured(stream)
    return Console(file=stream, width=wide, force_terminal=colours, no_color=not colours, highlight=False, markup=False)


def safe(value: object) -> str:
    """Text that cannot move the cursor or change colours: control characters are shown, not obeyed."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def line(text: str) -> None:
    """A line of data."""
    click.echo(text)


def document(value: object, lines: bool = False) -> None:
    """One JSON document on standard output; with `lines`, one line of a stream of them."""
    import msgspec

    plain = msgspec.to_builtins(value, str_keys=True)
    pretty = None if lines or not sys.stdout.isatty() else 2
    ascii_only = not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    click.echo(json.dumps(plain, ensure_ascii=ascii_only, indent=pretty))


def note(text: str, colour: str | None = None) -> None:
    """A remark for a person, on standard error."""
    click.echo(click.style(text, fg=colour) if colour else text, err=True, color=coloured(sys.stderr))


def done(text: str) -> None:
    """Something worked."""
    note(f"✓ {text}" if _can_write("✓") else text, "green")


def warn(code: str, **values: object) -> None:
    """Something is probably not as the user believes."""
    caution(say(f"error.{code}.cause", **values), say(f"error.{code}.remedy", **values), code)


def caution(cause: str, remedy: str, code: str) -> None:
    """A warning: cause, remedy and the code of its page."""
    note(f"! {_lines(cause)}", "yellow")
    note(f"  {_lines(remedy)} [{code}]")


def complain(cause: str, remedy: str, code: str) -> None:
    """An error: what is wrong, what to do about it, and where to read more."""
    head = click.style(say("error.word"), fg="red", bold=True)
    gap = "" if language() == "zh" else " "
    click.echo(f"{head}{gap}{_lines(cause)}", err=True, color=coloured(sys.stderr))
    if remedy:
        note(f"  {_lines(remedy)}")
    if code != "usage":
        note(click.style(f"  [{code}] dibs explain {code}", dim=True))


def compact(value: object) -> str:
    """A JSON value on one line."""
    return json.dumps(value, ensure_ascii=False)


def span(seconds: float) -> str:
    """A duration in one or two units.

    >>> span(0.0123), span(75), span(90_000)
    ('12ms', '1m15s', '1d1h')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s".replace(".0s", "s")
    units = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, seconds = divmod(int(seconds), size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return "".join(parts[:2])


def moment(when: datetime | None) -> str:
    """A point in time as ISO 8601 in UTC, with how far away it is."""
    if when is None:
        return "-"
    return f"{when.astimezone(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')} ({distance(when)})"


def distance(when: datetime | None) -> str:
    """How far away a point in time is."""
    if when is None:
        return "-"
    away = (when - datetime.now(UTC)) / timedelta(seconds=1)
    return say("time.ahead", span=span(away)) if away > 0 else say("time.ago", span=span(-away))


def agreed(question: str, yes: bool) -> None:
    """Ask before something that cannot be undone. Without a terminal only --yes will do."""
    from dibs.cli.problems import USAGE, problem
    from dibs.errors import InvalidInput

    if yes:
        return
    if not sys.stdin.isatty():
        raise problem(InvalidInput, "confirmation-needed", question=question, exit=USAGE)
    if not click.confirm(question, default=False, err=True):
        note(say("nothing_done"))
        raise click.exceptions.Exit(1)


@contextmanager
def progress(label: str, total: int) -> Iterator[Progress | None]:
    """A bar on standard error while something long runs; nothing where nobody looks."""
    if not sys.stderr.isatty() or total < 2:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console(sys.stderr), transient=True) as bar:
        bar.add_task(label, total=total)
        yield bar


def step(bar: Progress | None, count: int) -> None:
    """Move a bar."""
    if bar is not None:
        bar.advance(bar.task_ids[0], count)


def _lines(text: str) -> str:
    """Words of an error: lines of a list are kept, everything else that moves a cursor is shown."""
    return "\n".join(safe(part) for part in text.split("\n"))


def _can_write(text: str) -> bool:
    try:
        text.encode(sys.stderr.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
