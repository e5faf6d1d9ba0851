"""The folder of one running server: goes with it; what a killed run left is swept by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .cache import cache_folder, locked, make_readable


@dataclass(frozen=True)
class RunFolder:
    """A temporary folder, in use while somebody holds `holder` open: its owner, or the server's guard."""

    path: Path
    holder: int

    def remove(self) -> None:
        os.close(self.holder)
        shutil.rmtree(self.path, ignore_errors=True)


def open_run_folder(name: str) -> RunFolder:
    """A new folder that any user may enter."""
    runs = cache_folder() / "runs"
    with locked("runs"):
        make_readable(runs)
        for old in runs.iterdir():
            _sweep(old)
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=runs))
        path.chmod(0o755)
        return RunFolder(path, _hold(path))


def _sweep(folder: Path) -> None:
    try:
        os.close(_hold(folder))
    except BlockingIOError:
        return
    shutil.rmtree(folder, ignore_errors=True)


def _hold(folder: Path) -> int:
    holder = os.open(folder / "held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(holder)
        raise
    return holder
