"""`dibs init`: the first files of a project."""

from __future__ import annotations

from collections.abc import Iterator
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
_TABLE = 'url = "sqlite:///dibs.db"\napp = "jobs:jobs"\n'


@command("init", examples=("dibs init", "dibs init shop"), app=False, url=False)
@argument("folder", key="argument.folder", metavar="[FOLDER]", default=".")
def init(folder: str) -> None:
    """Nothing that exists is overwritten."""
    from dibs.errors import Conflict, DibsError

    place = Path(folder)
    if (place / "jobs.py").exists():
        raise problem(Conflict, "file-exists", file=place / "jobs.py")
    text = _JOBS.format(
        about=say("init.about"), where=say("init.where"), world=say("init.world"), greeting=say("init.greeting")
    )
    try:
        for file in _write(place, text):
            output.line(str(file))
    except OSError as error:
        raise problem(DibsError, "cannot-write", file=error.filename, error=error.strerror) from error
    output.done(say("init.done"))


def _write(place: Path, text: str) -> Iterator[Path]:
    place.mkdir(parents=True, exist_ok=True)
    (place / "jobs.py").write_text(text, encoding="utf-8")
    yield place / "jobs.py"
    written = _configure(place)
    if written:
        yield written


def _configure(place: Path) -> Path | None:
    """Add dibs' table to pyproject.toml, or write dibs.toml where there is none."""
    project, own = place / "pyproject.toml", place / "dibs.toml"
    if own.exists():
        return None
    if not project.exists():
        own.write_text(_TABLE, encoding="utf-8")
        return own
    text = project.read_text(encoding="utf-8")
    if "[tool.dibs]" in text:
        return None
    project.write_text(f"{text.rstrip()}\n\n[tool.dibs]\n{_TABLE}", encoding="utf-8")
    return project
