"""Data folders: each made once by its server's own program and kept in the cache, then copied for every run."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from .account import server_account
from .cache import kept


def copied(name: str, recipe: Sequence[str], initialise: Callable[[Path], None], folder: Path) -> Path:
    """`folder`/data, owned by the user that will serve it: a copy of what `initialise` fills.

    The `recipe` is all that its contents depend on: another recipe is another template.
    """
    key = f"{name}-{hashlib.sha256(' '.join(recipe).encode()).hexdigest()[:8]}"

    def build(draft: Path) -> None:
        data = draft / "data"
        data.mkdir(mode=0o700)
        server_account().give(data)
        initialise(data)

    subprocess.run(["cp", "-a", "--reflink=auto", kept(key, build) / "data", folder / "data"], check=True)
    return folder / "data"
