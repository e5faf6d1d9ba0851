"""Starts a server's program under its guard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .account import server_account
from .folders import RunFolder


def start_guarded(command: Sequence[str], environment: Mapping[str, str], folder: RunFolder) -> subprocess.Popen[bytes]:
    """The guard of a new server, which lives as long as the server; what both say goes to `folder`/log."""
    account = server_account()
    spec = {
        "owner": os.getpid(),
        "uid": account.uid,
        "gid": account.gid,
        "groups": account.groups,
        "folder": str(folder.path),
        "command": list(command),
        "environment": dict(environment),
    }
    with (folder.path / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")), json.dumps(spec)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[folder.holder],
            start_new_session=True,  # a Ctrl-C is for the tests, whose server must outlive their clean-up
        )
