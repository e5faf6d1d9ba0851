"""Where fetched servers are kept between runs: built once, complete or absent, whoever else is building."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .unavailable import ServerUnavailable


def cache_folder() -> Path:
    """`$DIBS_TEST_CACHE`, or one below /var/tmp: root's home can't be read by the servers' user."""
    chosen = os.environ.get("DIBS_TEST_CACHE")
    folder = Path(chosen).absolute() if chosen else Path(f"/var/tmp/dibs-servers-{os.getuid()}")
    make_readable(folder)
    _refuse_a_strangers(folder)
    return folder


def make_readable(folder: Path) -> None:
    """Create it if it is not there, so that the servers' user can enter it whatever our umask is."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)


def _refuse_a_strangers(folder: Path) -> None:
    """Programs are run from here, and anybody may make folders in /var/tmp: only we may write in it."""
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise ServerUnavailable(
            "the cache of test servers",
            f"{folder} belongs to, or can be written by, somebody else.",
            "remove it, or set DIBS_TEST_CACHE to a folder of your own.",
        )


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process and thread at a time; the lock goes with its holder, so none can be left behind."""
    folder = cache_folder() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kept(key: str, build: Callable[[Path], None]) -> Path:
    """The folder `key` of the cache; if it is not there, `build` fills a draft that then takes its place."""
    target = cache_folder() / key
    if target.is_dir():
        return target
    with locked(key):
        if not target.is_dir():
            draft = cache_folder() / f".draft-{key}"
            shutil.rmtree(draft, ignore_errors=True)
            make_readable(draft)
            build(draft)
            draft.rename(target)
    return target
