"""Short commands, and what they said."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .account import Account

OURSELVES = Account()


def ask(
    command: Sequence[str],
    *,
    account: Account = OURSELVES,
    environment: Mapping[str, str] | None = None,
    cwd: Path = Path("/"),
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, which reads what is `given`; `stdout` has both its output and its errors.

    OSError if it can't be run at all, for example because the account may not read it.
    """
    return subprocess.run(
        command,
        user=account.uid,
        group=account.gid,
        extra_groups=account.groups,
        env=environment,
        cwd=cwd,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
