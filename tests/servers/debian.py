"""Debian packages that are missing: installed when we are root, named when we are not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from .cache import locked
from .commands import ask


class PackagesMissing(Exception):
    """These packages are needed and were not installed; the message holds the command that does it."""

    def __init__(self, packages: Sequence[str], reason: str) -> None:
        super().__init__(packages, reason)
        self.packages = tuple(packages)
        self.reason = reason
        self.remedy = f"apt-get install {' '.join(packages)}"

    def __str__(self) -> str:
        return f"{self.reason} Remedy, as root: {self.remedy}"


def install(packages: Sequence[str]) -> None:
    """Install what is missing, quietly; one at a time, since apt refuses a second one beside it."""
    if shutil.which("apt-get") is None:
        raise PackagesMissing(packages, "This system has no apt-get.")
    if os.getuid() != 0:
        raise PackagesMissing(packages, f"{' '.join(packages)} missing, and only root may install.")
    with locked("apt"):
        _apt_get("update")
        answer = _apt_get("install", "--yes", "--no-install-recommends", *packages)
    if answer.returncode != 0:
        raise PackagesMissing(packages, f"apt-get failed: {answer.stdout[-600:].strip()}")


def _apt_get(*arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("-qq", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return ask(["apt-get", *options, *arguments], environment=environment)
