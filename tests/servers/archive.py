"""Debian packages unpacked into the cache and not installed: the system stays as it is, and root is not needed.

apt runs with a state of its own, so that another suite never comes near the system's. Its mirror, proxy and
passwords are those that the system's apt uses. Signatures are checked; the age of an index is not, since a
mirror may serve one of last week. What such an index names may have left the archive since: that is a 404,
and no older or newer version is had in its place.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .cache import kept
from .commands import ask

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
UNUSED = re.compile(
    r"(lib)?perl|libgdbm|libdb5|libc-gconv|gcc-\d+-base|debconf|openssl-provider"
    r"|adduser|passwd|login|libpam-|postgresql-|ssl-cert|procps|sysvinit|init-system|sensible|ucf|netbase"
)
"""What the servers' packages depend on for scripts that are not run here."""


class ArchiveUnavailable(Exception):
    """The package could not be had; the message says why."""


@dataclass(frozen=True)
class Wanted:
    """A package of a suite, in versions that begin with `series`."""

    suite: str
    package: str
    series: str


def unpacked_package(wanted: Wanted) -> Path:
    """The root folder of the package and of all that it needs to run, its C library included."""
    return kept(f"debian-{wanted.suite}-{wanted.package}-{wanted.series}", partial(_build, wanted)) / "root"


def by_its_own_loader(root: Path, program: str) -> tuple[str, ...]:
    """How to run a program below `root`: with its own C library, of which ours may be years older."""
    loaders = sorted(root.glob("lib/*/ld-linux*.so.*")) + sorted(root.glob("usr/lib/*/ld-linux*.so.*"))
    if not loaders:
        raise ArchiveUnavailable(f"{root} holds no loader")
    libraries = f"{loaders[0].parent}:{root / 'usr/lib' / loaders[0].parent.name}"
    return str(loaders[0]), "--library-path", libraries, str(root / program)


def _build(wanted: Wanted, folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ArchiveUnavailable("this system has no apt-get")
    with tempfile.TemporaryDirectory() as scratch:
        apt = _Apt(Path(scratch))
        apt.read_index(wanted.suite)
        apt.download(apt.needed(wanted))
        for package in sorted(Path(scratch).glob("*.deb")):
            apt.run("dpkg-deb", "--extract", str(package), str(folder / "root"))


class _Apt:
    """apt-get with a state of its own in `folder`, where it also downloads to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for needed in ("lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d"):
            (folder / needed).mkdir(parents=True)
        (folder / "status").touch()
        (folder / "apt.conf").write_text("\n".join([*_way_out(), *self._settings()]) + "\n")

    def _settings(self) -> list[str]:
        folders = {"State": "", "State::lists": "/lists", "State::status": "/status", "Cache": "/cache", "Etc": "/etc"}
        return [
            *(f'Dir::{name} "{self._folder}{path}";' for name, path in folders.items()),
            f'Dir::Etc::sourcelist "{self._folder}/sources.list";',
            'Dir::Etc::sourceparts "-";',
            'Dir::Etc::netrc "/etc/apt/auth.conf";',
            'Dir::Etc::netrcparts "/etc/apt/auth.conf.d";',
            'Acquire::Check-Valid-Until "false";',
            'Acquire::Languages "none";',
            'Acquire::Retries "3";',
            'APT::Install-Recommends "false";',
            'APT::Sandbox::User "root";',
            'APT::Update::Error-Mode "any";',
        ]

    def read_index(self, suite: str) -> None:
        """From the first of the system's mirrors that has it."""
        refused = ["this system's apt knows no mirror of Debian"]
        for mirror in _mirrors():
            source = f"deb [signed-by={KEYRING}] {mirror} {suite} main\n"
            (self._folder / "sources.list").write_text(source)
            try:
                self.run("apt-get", "-q", "update")
            except ArchiveUnavailable as failure:
                refused.append(str(failure))
            else:
                return
        raise ArchiveUnavailable(refused[-1])

    def needed(self, wanted: Wanted) -> list[str]:
        """The packages that would be installed on a system that has none."""
        plan = dict(re.findall(r"^Inst (\S+) \((\S+)", self.run("apt-get", "-qs", "install", wanted.package), re.M))
        version = re.sub(r"^\d+:", "", plan.get(wanted.package, "nothing"))
        if not version.startswith(f"{wanted.series}."):
            raise ArchiveUnavailable(f"Debian {wanted.suite} has {wanted.package} {version}, and not {wanted.series}")
        return [f"{name}={version}" for name, version in plan.items() if not UNUSED.match(name)]

    def download(self, packages: Sequence[str]) -> None:
        self.run("apt-get", "-q", "download", *packages)

    def run(self, *command: str) -> str:
        """What the command said; ArchiveUnavailable if it failed."""
        environment = {**os.environ, "APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C"}
        answer = ask(command, environment=environment, cwd=self._folder)
        if answer.returncode != 0:
            raise ArchiveUnavailable(f"{' '.join(command[:3])} failed: {answer.stdout[-600:].strip()}")
        return answer.stdout


def _way_out() -> list[str]:
    """The system's own settings about proxies and certificates."""
    return re.findall(r"^Acquire::https?::.*$", ask(["apt-config", "dump"]).stdout, re.MULTILINE)


def _mirrors() -> list[str]:
    """The mirrors of Debian that the system's apt is told to ask, read from the addresses it would fetch."""
    addresses = ask(["apt-get", "update", "--print-uris"]).stdout
    return list(dict.fromkeys(re.findall(r"^'(\S+?/debian/)dists/", addresses, re.MULTILINE)))
