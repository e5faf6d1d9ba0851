"""Settings of a command: its flag, else DIBS_*, else the file, else the default, each checked alike."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from dibs.cli.problems import problem
from dibs.door import settings
from dibs.errors import DibsError, InvalidOption
from dibs.model.duration import seconds


def value(name: str, flag: Any = None) -> Any:
    """The value of a setting."""
    return settings.find(name, flag).value


def whole(name: str, flag: Any, least: int, most: int) -> int:
    """A setting that is a whole number; one that is not is refused by its origin."""
    found = settings.find(name, flag)
    text = str(found.value)
    if not text.isdecimal() or not least <= int(text) <= most:
        raise problem(InvalidOption, "bad-setting", name=name, value=text, origin=found.origin, least=least, most=most)
    return int(text)


def span(name: str, flag: Any) -> str:
    """A setting that is a duration; one that is not is refused by its origin."""
    found = settings.find(name, flag)
    try:
        seconds(found.value)
    except InvalidOption as error:
        raise problem(InvalidOption, "bad-duration", name=name, value=found.value, origin=found.origin) from error
    return str(found.value) if isinstance(found.value, str) else f"{found.value}s"


def log_level(flag: str | None) -> int:
    """The number of a level of the log; a level that there is not is refused by its origin."""
    found = settings.find("log_level", flag)
    number = logging.getLevelNamesMapping().get(str(found.value).upper())
    if number is None:
        raise problem(InvalidOption, "bad-log-level", value=found.value, origin=found.origin)
    return number


def trouble(name: str) -> DibsError | None:
    """What whoever needs a setting would refuse it for, if for anything. The database and the application are not
    looked at: whoever opens them sees more."""
    from dibs.cli.worker import queues_of

    checks: dict[str, Callable[[], object]] = {
        "queues": lambda: queues_of(None),
        "concurrency": lambda: whole("concurrency", None, 1, 10_000),
        "processes": lambda: whole("processes", None, 1, 1_000),
        "grace": lambda: span("grace", None),
        "log_level": lambda: log_level(None),
        "payload_limit": lambda: whole("payload_limit", None, 1, 2**53),
    }
    try:
        checks.get(name, lambda: None)()
    except DibsError as error:
        return error
    return None


def log_to_terminal(level: str | None) -> None:
    """Log lines to standard error."""
    logging.basicConfig(level=log_level(level), stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(message)s")
