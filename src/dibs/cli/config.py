"""`dibs config show`: every setting, and where its value comes from."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from dibs.cli import output
from dibs.cli.configured import trouble
from dibs.cli.grammar import as_json, command, pass_target
from dibs.cli.problems import code_of, nearest, words
from dibs.cli.tables import Column, Word, table
from dibs.cli.target import Target
from dibs.door import settings
from dibs.messages import say

PREFIX = "DIBS_"
NO_SETTINGS = frozenset({"DIBS_DEBUG", "DIBS_LEASH", "DIBS_DEMO_URL", "DIBS_ALLOW_MISSING"})
"""Variables that mean something and are no settings."""
OF_OUR_OWN = ("DIBS_TEST_", "DIBS_BENCH_", "DIBS_CHAOS_")
"""How those begin that dibs' own tests and measurements read."""
_SECRETS = ("password", "pass", "secret", "token", "key")


@command("config.show", examples=("dibs config show", "dibs config show --json"))
@as_json
@pass_target
def show(target: Target, as_json: bool) -> None:
    """Secrets are masked."""
    flags = {"url": target.url, "app": target.app}
    found = {name: settings.find(name, flags.get(name)) for name in settings.DEFAULTS}
    troubles = {name: error for name in found if (error := trouble(name))}
    rows = [(name, _shown(name, item.value), _origin(name, item.origin)) for name, item in found.items()]
    if as_json:
        keys = ("name", "value", "origin", "problem")
        problems = [words(troubles[name])[0] if name in troubles else None for name in found]
        shown = [dict(zip(keys, (*row, wrong), strict=True)) for row, wrong in zip(rows, problems, strict=True)]
        output.document({"settings": shown})
    else:
        table(
            [Column(say("title.name")), Column(say("title.value")), Column(say("title.origin"))],
            [(name, _cell(value, name in troubles), origin) for name, value, origin in rows],
        )
    for error in troubles.values():
        output.caution(*words(error), code_of(error))
    for values in unknown():
        output.warn("unknown-setting", **values)


def unknown() -> list[dict[str, str]]:
    """Names in dibs' table and in the environment that mean nothing, each as the warning tells of it."""
    table, file = settings.toml_table(Path.cwd())
    found = [_unknown(name, "", file) for name in table if name not in settings.DEFAULTS]
    known = {f"{PREFIX}{name.upper()}" for name in settings.DEFAULTS} | NO_SETTINGS
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and not name.startswith(OF_OUR_OWN):
            found.append(_unknown(name, PREFIX, say("config.environment")))
    return found


def _unknown(name: str, prefix: str, place: str) -> dict[str, str]:
    near = nearest(name.removeprefix(prefix).lower(), settings.DEFAULTS)[:1]
    meant = [f"{prefix}{word.upper()}" if prefix else word for word in near]
    hint = say("usage.nearest", names=meant[0]) + " " if meant else ""
    return {"name": name, "file": place, "hint": hint, "names": ", ".join(settings.DEFAULTS)}


def masked(url: str) -> str:
    """A database URL without its secrets."""
    parts = urlsplit(url)
    place = parts.netloc
    if parts.password is not None:
        place = place.replace(f":{parts.password}@", ":***@")
    query = [(name, "***" if name.lower() in _SECRETS else value) for name, value in parse_qsl(parts.query)]
    return urlunsplit(parts._replace(netloc=place, query=urlencode(query, safe="*/"))) if parts.netloc else url


def _shown(name: str, value: object) -> object:
    return masked(value) if name == "url" and isinstance(value, str) else value


def _cell(value: object, wrong: bool) -> object:
    cell = Word("-" if value is None else output.safe(value))
    cell.colour = "red" if wrong else ""
    return cell


def _origin(name: str, origin: str) -> str:
    if origin == "argument":
        return f"--{name}"
    return say("config.default") if origin == "default" else origin
