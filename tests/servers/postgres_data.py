"""Data folders of PostgreSQL, by initdb."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .account import server_account
from .commands import ask
from .postgres_binaries import Binaries
from .templates import copied
from .unavailable import ServerUnavailable

OPTIONS = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")


def fresh_data(binaries: Binaries, folder: Path) -> Path:
    """A new cluster in `folder`/data, owned by the user that will serve it."""
    recipe = (str(binaries.folder), binaries.version, *OPTIONS)
    return copied(f"pgdata-{binaries.version}", recipe, partial(_initialise, binaries), folder)


def _initialise(binaries: Binaries, data: Path) -> None:
    command = [binaries.program("initdb"), f"--pgdata={data}", *OPTIONS]
    answer = ask(command, account=server_account(), environment=binaries.environment())
    if answer.returncode != 0:
        reason = f"initdb failed: {answer.stdout[-2000:]}"
        raise ServerUnavailable(f"PostgreSQL {binaries.version}", reason, "read its words above.")
