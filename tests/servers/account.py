"""The user that servers run as: PostgreSQL and MySQL refuse root, so root hands them to nobody."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """A user to become; all None means: stay who we are."""

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None

    def give(self, path: Path) -> None:
        """Make this user the owner of one file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """Nobody when we are root, else ourselves."""
    if os.getuid() != 0:
        return Account()
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid, ())
