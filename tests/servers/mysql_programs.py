"""Finds the program of a MySQL or MariaDB server, or fetches it.

In this order: the folder that `DIBS_TEST_MYSQL97_BIN` (`DIBS_TEST_MARIADB1011_BIN`) names; Debian's package,
from the cache or from the archive; an installed one of the same series. MySQL is in Debian unstable only,
and what is there can be gone tomorrow. One never stands in for the other.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .account import server_account
from .archive import ArchiveUnavailable, Wanted, by_its_own_loader, unpacked_package
from .commands import ask
from .unavailable import ServerUnavailable

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
"""The servers' whole environment."""


@dataclass(frozen=True)
class Release:
    """A kind of server in one series, and where Debian has it."""

    name: str
    maker: str
    program: str
    debian: Wanted


MYSQL97 = Release("mysql97", "MySQL", "mysqld", Wanted("sid", "mysql-server-core", "9.7"))
MARIADB1011 = Release("mariadb1011", "MariaDB", "mariadbd", Wanted("bookworm", "mariadb-server-core", "10.11"))


@dataclass(frozen=True)
class Programs:
    """How to run the server, with the options that tell it where its files are; those files; its exact version."""

    command: tuple[str, ...]
    share: Path
    version: str = ""


class _Unfit(Exception):
    """This folder cannot serve; the message says why."""


def find_programs(release: Release) -> Programs:
    """The server's program; ServerUnavailable names every place that was tried."""
    variable = f"DIBS_TEST_{release.name.upper()}_BIN"
    if sys.platform != "linux":
        raise ServerUnavailable(release.name, "the harness reads /proc.", "set DIBS_TEST_SERVERS.")
    if chosen := os.environ.get(variable):
        try:
            return _checked(_installed(Path(chosen) / release.program), release)
        except _Unfit as unfit:
            raise ServerUnavailable(release.name, f"{unfit}.", f"correct {variable}.") from unfit
    reasons: list[str] = []
    sources: tuple[Callable[[Release], Programs], ...] = (_debians, _systems)
    for source in sources:
        try:
            return _checked(source(release), release)
        except (_Unfit, ArchiveUnavailable) as unfit:
            reasons.append(str(unfit))
    remedy = f"install {release.maker} {release.debian.series}, or set {variable} to the folder of its program."
    raise ServerUnavailable(release.name, f"{'; '.join(reasons)}.", remedy)


def _debians(release: Release) -> Programs:
    root = unpacked_package(release.debian)
    share = root / "usr/share/mysql"
    files = (
        f"--basedir={root / 'usr'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
        f"--lc-messages-dir={share}",
    )
    return Programs((*by_its_own_loader(root, f"usr/sbin/{release.program}"), "--no-defaults", *files), share)


def _systems(release: Release) -> Programs:
    program = shutil.which(release.program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec")
    if program is None:
        raise _Unfit(f"no installed {release.program} found")
    return _installed(Path(program).resolve())


def _installed(program: Path) -> Programs:
    """One that knows where its files are."""
    folders = [program.parents[1] / folder for folder in ("share/mysql", "share/mariadb", "share")]
    share = next((folder for folder in folders if folder.is_dir()), folders[0])
    return Programs((str(program), "--no-defaults"), share)


@cache
def _checked(programs: Programs, release: Release) -> Programs:
    """Run once, as the user that will run it; the version found must be of the series, and of the maker."""
    try:
        said = ask([*programs.command, "--version"], account=server_account(), environment=ENVIRONMENT).stdout
    except OSError as error:
        said = str(error)
    found = re.search(r"Ver (\S+)", said)
    if found is None:
        raise _Unfit(f"{programs.command[0]} does not run here: {said.strip()}")
    is_mariadb = "MariaDB" in found[1]
    if not found[1].startswith(f"{release.debian.series}.") or is_mariadb != (release.maker == "MariaDB"):
        raise _Unfit(f"{programs.command[0]} is {said.strip()}, not {release.maker} {release.debian.series}")
    return Programs(programs.command, programs.share, re.split(r"-MariaDB", found[1])[0])
