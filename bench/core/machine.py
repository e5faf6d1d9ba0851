"""The machine: what it is, how busy others keep it, and the processor time of a process."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TICK = os.sysconf("SC_CLK_TCK")
_QUIET = 0.25
"""Cores that others may use while we call the machine quiet."""
_PACKAGES = ("dibs", "psycopg", "psycopg-binary", "PyMySQL", "mysqlclient", "msgspec", "uvloop")


@dataclass(frozen=True)
class Machine:
    """Where and with what the figures were taken."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    python: str
    sqlite: str
    packages: dict[str, str]

    def as_json(self) -> dict[str, object]:
        """For the results file."""
        return asdict(self)


def describe() -> Machine:
    """This machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(
        cpu=_cpu_name(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(memory, 1),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        packages={name: found for name in _PACKAGES if (found := _version(name))},
    )


def commit() -> str:
    """The commit in the working tree, marked if src differs from it."""
    head = _git("rev-parse", "--short=10", "HEAD")
    return f"{head}+changes" if _git("status", "--porcelain", "--", "src") else head


def now() -> str:
    """The date and time of a measurement."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def busy_seconds() -> float:
    """Processor time that all cores together have spent at work since the start, those of the host's others too."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / _TICK


def wait_for_quiet(patience: float) -> float:
    """Wait, at most so many seconds, until others leave the cores alone. Answers the cores they use now."""
    deadline = time.monotonic() + patience
    while True:
        others = _others(0.3)
        if others <= _QUIET or time.monotonic() >= deadline:
            return others
        time.sleep(0.7)


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_of(pid: int) -> float:
    """Processor seconds of a running process, all its threads, by its own clock (see clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def _others(span: float) -> float:
    busy, ours = busy_seconds(), time.process_time()
    started = time.monotonic()
    time.sleep(span)
    wall = time.monotonic() - started
    return max(0.0, (busy_seconds() - busy - (time.process_time() - ours)) / wall)


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
