"""`dibs init`: the first files of a project."""

from __future__ import annotations

from pathlib import Path

from dibs.cli import output
from dibs.cli.grammar import argument, command
from dibs.cli.problems import problem
from dibs.messages import say

_JOBS = '''"""{about}"""

from dibs import Dibs

jobs = Dibs()  # {where}


@jobs.task
def hello(name: str = "{world}") -> str:
    return f"{greeting}"
'''
_URL = 'url = "sqlite:///dibs.db"\n'
_APP = 'app = "jobs:jobs"\n'


@command("init", examples=("dibs init", "dibs init shop"), app=False, url=False)
@argument("folder", key="argument.folder", metavar="[FOLDER]", default=".")
def init(folder: str) -> None:
    """Nothing that exists is overwritten."""
    from dibs.errors import DibsError

    place = Path(folder)
    ours = not (place / "jobs.py").exists()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file, made in (_program(place, ours), _settings(place, ours)):
            if made:
                output.line(str(file))
            else:
                output.note(say("init.left", file=file))
    except OSError as error:
        raise problem(DibsError, "cannot-write", file=error.filename, error=error.strerror) from error
    if ours:
        output.done(say("init.done"))


def _program(place: Path, ours: bool) -> tuple[Path, bool]:
    """The first jobs.py, and whether it was written."""
    file = place / "jobs.py"
    if ours:
        words = {name: say(f"init.{name}") for name in ("about", "where", "world", "greeting")}
        file.write_text(_JOBS.format(**words), encoding="utf-8")
    return file, ours


def _settings(place: Path, ours: bool) -> tuple[Path, bool]:
    """dibs' table in pyproject.toml, or dibs.toml where there is none, and whether it was written.

    It names the application only if we have written that: somebody's jobs.py may have another name for it.
    """
    project, own = place / "pyproject.toml", place / "dibs.toml"
    table = _URL + (_APP if ours else "")
    if own.exists():
        return own, False
    if not project.exists():
        own.write_text(table, encoding="utf-8")
        return own, True
    text = project.read_text(encoding="utf-8")
    if "[tool.dibs]" in text:
        return project, False
    project.write_text(f"{text.rstrip()}\n\n[tool.dibs]\n{table}", encoding="utf-8")
    return project, True
