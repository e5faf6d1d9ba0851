"""Where settings come from: what is given, else DIBS_* in the environment, else TOML, else the default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dibs.errors import InvalidOption

DEFAULTS: dict[str, Any] = {
    "url": "sqlite:///dibs.db",
    "app": None,
    "queues": None,
    "concurrency": 16,
    "processes": 1,
    "grace": "30s",
    "log_level": "info",
    "lang": None,
    "payload_limit": 1_000_000,
}
"""Every setting that can come from the environment or a file, with its default."""


class Setting(NamedTuple):
    """A value and where it came from."""

    value: Any
    origin: str


def find(name: str, given: Any = None, folder: Path | None = None) -> Setting:
    """One setting, with its origin."""
    if given is not None:
        return Setting(given, "argument")
    variable = f"DIBS_{name.upper()}"
    if os.environ.get(variable):
        return Setting(os.environ[variable], f"${variable}")
    table, file = toml_table(folder or Path.cwd())
    if name in table:
        return Setting(table[name], file)
    return Setting(DEFAULTS[name], "default")


def payload_limit(given: Any = None) -> int:
    """The setting of that name: bytes, as a whole number."""
    value, origin = find("payload_limit", given)
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidOption(f"payload_limit={value!r} ({origin}) must be a whole number of bytes.")
    return number


def toml_table(folder: Path) -> tuple[Mapping[str, Any], str]:
    """dibs' table in dibs.toml (all of it) or in pyproject.toml ([tool.dibs]), and the file's name."""
    for name, path in (("dibs.toml", ()), ("pyproject.toml", ("tool", "dibs"))):
        file = folder / name
        if file.is_file():
            table = _read(file)
            for key in path:
                table = table.get(key, {})
            if table:
                return table, name
    return {}, ""


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InvalidOption(f"{file.name} cannot be read: {error}.", "Mend the file.") from error
