"""Data folders of PostgreSQL: made by initdb once per version, then copied for each server."""

from __future__ import annotations

import hashlib
import subprocess
from functools import partial
from pathlib import Path

from .account import server_account
from .cache import kept
from .commands import ask
from .postgres_binaries import Binaries
from .unavailable import ServerUnavailable

OPTIONS = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")


def fresh_data(binaries: Binaries, folder: Path) -> Path:
    """A new cluster in `folder`/data, owned by the user that will serve it."""
    recipe = " ".join((str(binaries.folder), binaries.version, *OPTIONS))
    key = f"pgdata-{binaries.version}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    template = kept(key, partial(_initialise, binaries))
    subprocess.run(["cp", "-a", "--reflink=auto", template / "data", folder / "data"], check=True)
    return folder / "data"


def _initialise(binaries: Binaries, folder: Path) -> None:
    account = server_account()
    data = folder / "data"
    data.mkdir(mode=0o700)
    account.give(data)
    command = [binaries.program("initdb"), f"--pgdata={data}", *OPTIONS]
    answer = ask(command, account=account, environment=binaries.environment())
    if answer.returncode != 0:
        reason = f"initdb failed: {answer.stdout[-2000:]}"
        raise ServerUnavailable(f"PostgreSQL {binaries.version}", reason, "read its words above.")
