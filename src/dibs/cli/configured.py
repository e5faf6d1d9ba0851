"""Settings of a command: its flag, else DIBS_*, else the file, else the default, each checked alike."""

from __future__ import annotations

import logging
import sys
from typing import Any

from dibs.cli.problems import problem
from dibs.door import settings
from dibs.errors import InvalidOption
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


def log_to_terminal(level: str | None) -> None:
    """Log lines to standard error."""
    found = settings.find("log_level", level)
    number = logging.getLevelNamesMapping().get(str(found.value).upper())
    if number is None:
        raise problem(InvalidOption, "bad-log-level", value=found.value, origin=found.origin)
    logging.basicConfig(level=number, stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(message)s")
