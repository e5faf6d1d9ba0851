"""Finds PgBouncer's program, or fetches it.

In this order: the folder that `DIBS_TEST_PGBOUNCER_BIN` names; Debian's package, from the cache or from the archive;
an installed one of the same series.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from .account import server_account
from .archive import ArchiveUnavailable, Wanted, by_its_own_loader, unpacked_package
from .commands import ask
from .unavailable import ServerUnavailable

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
"""The pooler's whole environment."""
DEBIAN = Wanted("trixie", "pgbouncer", "1.24")
VARIABLE = "DIBS_TEST_PGBOUNCER_BIN"


class _Unfit(Exception):
    """This program cannot serve; the message says why."""


def find_pgbouncer() -> tuple[str, ...]:
    """The command that runs it; ServerUnavailable names every place that was tried."""
    if sys.platform != "linux":
        raise ServerUnavailable("pgbouncer", "the harness reads /proc.", "install Linux.")
    if chosen := os.environ.get(VARIABLE):
        try:
            return _checked((str(Path(chosen) / "pgbouncer"),))
        except _Unfit as unfit:
            raise ServerUnavailable("pgbouncer", f"{unfit}.", f"correct {VARIABLE}.") from unfit
    reasons: list[str] = []
    sources: tuple[Callable[[], tuple[str, ...]], ...] = (_debians, _systems)
    for source in sources:
        try:
            return _checked(source())
        except (_Unfit, ArchiveUnavailable) as unfit:
            reasons.append(str(unfit))
    remedy = f"install PgBouncer {DEBIAN.series}, or set {VARIABLE} to the folder of its program."
    raise ServerUnavailable("pgbouncer", f"{'; '.join(reasons)}.", remedy)


def _debians() -> tuple[str, ...]:
    return by_its_own_loader(unpacked_package(DEBIAN), "usr/sbin/pgbouncer")


def _systems() -> tuple[str, ...]:
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise _Unfit("no installed pgbouncer found")
    return (program,)


@cache
def _checked(command: tuple[str, ...]) -> tuple[str, ...]:
    """Run once, as the user that will run it."""
    try:
        said = ask([*command, "--version"], account=server_account(), environment=ENVIRONMENT).stdout.strip()
    except OSError as error:
        said = str(error)
    if not said.startswith(f"PgBouncer {DEBIAN.series}."):
        raise _Unfit(f"{command[-1]} is no PgBouncer {DEBIAN.series}: {said.partition(chr(10))[0]}")
    return command
