"""`dibs config show`: every setting, and where its value comes from."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from dibs.cli import output
from dibs.cli.grammar import as_json, command, pass_target
from dibs.cli.tables import Column, table
from dibs.cli.target import Target
from dibs.door import settings
from dibs.messages import say

_SECRETS = ("password", "pass", "secret", "token", "key")


@command("config.show", examples=("dibs config show", "dibs config show --json"))
@as_json
@pass_target
def show(target: Target, as_json: bool) -> None:
    """Secrets are masked."""
    flags = {"url": target.url, "app": target.app}
    found = {name: settings.find(name, flags.get(name)) for name in settings.DEFAULTS}
    rows = [(name, _shown(name, item.value), _origin(name, item.origin)) for name, item in found.items()]
    if as_json:
        keys = ("name", "value", "origin")
        output.document({"settings": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        table(
            [Column(say("title.name")), Column(say("title.value")), Column(say("title.origin"))],
            [(name, "-" if value is None else value, origin) for name, value, origin in rows],
        )
    for name, file in unknown():
        output.warn("unknown-setting", name=name, file=file, names=", ".join(settings.DEFAULTS))


def unknown() -> list[tuple[str, str]]:
    """Names in dibs' table that mean nothing, with the file they are in."""
    table, file = settings.toml_table(Path.cwd())
    return [(name, file) for name in table if name not in settings.DEFAULTS]


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


def _origin(name: str, origin: str) -> str:
    if origin == "argument":
        return f"--{name}"
    return say("config.default") if origin == "default" else origin
