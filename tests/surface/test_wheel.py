"""What users install: a wheel that is whole, typed and runs without the tree it was built from."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import dibs
from tests.surface.source import ROOT, SOURCE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network from a copy of the tree."""
    copy, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(SOURCE, copy / "src/dibs", ignore=shutil.ignore_patterns("__pycache__"))
    _run(sys.executable, "-m", "pip", "wheel", ".", "-w", str(out), *OFFLINE, cwd=copy)
    [found] = out.glob("*.whl")
    return found


OFFLINE = ("--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "-q")


def _run(*command: str, cwd: Path) -> str:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100)
    assert finished.returncode == 0, f"{command}: {finished.stdout}\n{finished.stderr}"
    return finished.stdout


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    files = {str(path.relative_to(SOURCE.parent)) for path in SOURCE.rglob("*") if path.is_file()}
    ours = {name for name in files if "__pycache__" not in name}
    packed = set(ZipFile(wheel).namelist())
    assert not ours - packed, "left out of the wheel"
    assert {"dibs/py.typed", "dibs/store/sql/postgres.sql", "dibs/store/sql/sqlite.sql"} <= packed
    assert {"dibs/store/migrations/postgres/0001_core.sql", "dibs/store/migrations/sqlite/0001_core.sql"} <= packed


def test_the_wheel_holds_nothing_but_the_package_and_its_licence(wheel: Path) -> None:
    packed = ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in packed}
    assert folders == {"dibs", f"dibs-{dibs.__version__}.dist-info"}
    assert f"dibs-{dibs.__version__}.dist-info/licenses/LICENSE" in packed


def test_the_installed_wheel_enqueues_runs_and_answers_on_the_command_line(wheel: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "venv"
    venv.create(fresh, with_pip=False)
    python = str(fresh / "bin/python")
    _run(sys.executable, "-m", "pip", "--python", python, "install", str(wheel), *OFFLINE, cwd=tmp_path)
    site = next(fresh.glob("lib/python*/site-packages"))
    # Its dependencies are borrowed from here; a path file inside a borrowed folder is not read, so the tree stays out.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert _run(str(fresh / "bin/dibs"), "--version", cwd=tmp_path).strip().endswith(dibs.__version__)
    program = (
        "import dibs; jobs = dibs.Dibs('sqlite://'); task = jobs.task(name='hello')(len); "
        "print(dibs.__file__); print(jobs.enqueue('hello', {'obj': [1, 2]}).created)"
    )
    home, created = _run(python, "-c", program, cwd=tmp_path).splitlines()
    assert Path(home).is_relative_to(fresh)
    assert created == "True"


def test_the_version_is_written_in_one_way_everywhere() -> None:
    from importlib.metadata import version

    assert version("dibs") == dibs.__version__
    assert f"## [{dibs.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
