"""Names people choose: queues, tasks, schedules, keys."""

from __future__ import annotations

import re
from typing import Any

from dibs.errors import InvalidName, InvalidOption

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,63}")
KEY_LIMIT = 191
PRIORITY_LIMIT = 2_000_000_000


def check_name(kind: str, name: Any) -> str:
    """Return `name` if it may name a queue or task; a trailing newline or a foreign letter is refused."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidName(f"{name!r} cannot be a {kind} name.", name=name)
    return name


def check_key(kind: str, key: Any) -> str | None:
    """Return `key` if it may be a unique, order or fair key: 1 to 191 characters, no NUL, no lone surrogate."""
    if key is None:
        return None
    if not isinstance(key, str) or not 1 <= len(key) <= KEY_LIMIT:
        raise InvalidOption(f"{kind}={key!r} must be a text of 1 to {KEY_LIMIT} characters.")
    if "\x00" in key or any("\ud800" <= letter <= "\udfff" for letter in key):
        raise InvalidOption(f"{kind}={key!r} contains a NUL or half of a surrogate pair.")
    return key


def shown(value: Any) -> str:
    """A value in an error message, also a number that is too long to be written."""
    huge = isinstance(value, int) and value.bit_length() > 64
    return f"a number of {value.bit_length()} bits" if huge else repr(value)


def check_priority(priority: Any) -> int:
    """Return `priority` if it is a whole number the databases can hold."""
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > PRIORITY_LIMIT:
        raise InvalidOption(
            f"priority={shown(priority)} must be a whole number of at most {PRIORITY_LIMIT} either side of zero."
        )
    return int(priority)
