"""Finding the application: the one `Dibs` object that a module of the user holds."""

from __future__ import annotations

import difflib
import importlib
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from dibs.cli.problems import problem
from dibs.door import settings
from dibs.errors import AppNotFound, DatabaseError
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs

CANDIDATES = ("jobs", "app", "main")


class Found(NamedTuple):
    """An application, the name it was found under, and where that name came from."""

    dibs: Dibs
    name: str
    origin: str


def find(given: str | None = None) -> Found:
    """The application that is given or configured, else the one in jobs.py, app.py or main.py.

    Raises `AppNotFound`, with everything that was tried and why it was not it.
    """
    make_importable()
    setting = settings.find("app", given)
    if setting.value:
        return _named(str(setting.value), setting.origin)
    tried: list[str] = []
    for module in CANDIDATES:
        found = _candidate(module, tried)
        if found is not None:
            return found
    raise problem(AppNotFound, "app-not-found", tried="".join(f"\n  - {line}" for line in tried))


def find_if_any() -> Found | None:
    """The application, or None if this folder shows no sign of one."""
    make_importable()
    if settings.find("app").value or any(_file(module) for module in CANDIDATES):
        try:
            return find()
        except AppNotFound as error:
            if error.data.get("code") != "app-not-found":
                raise
    return None


def make_importable() -> None:
    """Put the current folder, and src/ in it, first on the path, as `python -m` would."""
    for folder in (Path.cwd() / "src", Path.cwd()):
        text = str(folder)
        if folder.is_dir() and text not in sys.path:
            sys.path.insert(0, text)


def _named(name: str, origin: str) -> Found:
    path, _, attribute = name.partition(":")
    path = path.removesuffix(".py").replace("/", ".").lstrip(".")
    module = load(path)
    apps = _apps(module)
    if attribute:
        return Found(_chosen(apps, path, attribute), name, origin)
    if len(apps) != 1:
        raise problem(AppNotFound, "app-unclear", module=path, count=len(apps), names=", ".join(apps) or "-")
    attribute, dibs = next(iter(apps.items()))
    return Found(dibs, f"{path}:{attribute}", origin)


def _chosen(apps: dict[str, Dibs], path: str, attribute: str) -> Dibs:
    if attribute not in apps:
        near = difflib.get_close_matches(attribute, apps, 1) or list(apps)
        raise problem(AppNotFound, "app-no-attribute", module=path, name=attribute, names=", ".join(near) or "-")
    return apps[attribute]


def _candidate(name: str, tried: list[str]) -> Found | None:
    file = _file(name)
    if file is None:
        tried.append(say("app.no_file", file=f"{name}.py"))
    elif "dibs" not in file.read_text(encoding="utf-8", errors="replace"):
        # Importing somebody's main.py can do anything: it is read before it is run.
        tried.append(say("app.no_mention", file=file.name))
    else:
        apps = _apps(load(name))
        if len(apps) == 1:
            attribute, dibs = next(iter(apps.items()))
            return Found(dibs, f"{name}:{attribute}", say("app.discovered"))
        tried.append(
            say("app.several", file=file.name, names=", ".join(apps)) if apps else say("app.none", file=file.name)
        )
    return None


def _file(name: str) -> Path | None:
    for folder in (Path.cwd(), Path.cwd() / "src"):
        if (folder / f"{name}.py").is_file():
            return folder / f"{name}.py"
    return None


def _apps(module: ModuleType) -> dict[str, Dibs]:
    """The Dibs objects of a module, each once, by the first name it has there."""
    from dibs import Dibs

    found: dict[int, tuple[str, Dibs]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Dibs) and not name.startswith("__"):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def load(path: str) -> ModuleType:
    """Import a module of the user; what it prints goes to standard error, where it cannot spoil data."""
    try:
        with redirect_stdout(sys.stderr):
            return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(f"{error.name}.")):
            raise problem(AppNotFound, "app-not-importable", module=path, folder=Path.cwd()) from error
        raise _broken(path, error) from error
    except DatabaseError:
        raise  # the URL is wrong, or the like: that is not the module's fault
    except (Exception, SystemExit) as error:
        raise _broken(path, error) from error


def _broken(path: str, error: BaseException) -> AppNotFound:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    last = frames[-1] if len(frames) > 1 else None
    place = f"{Path(last.filename).name}:{last.lineno}" if last else path
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}:{error.lineno}"
    shown = f"{type(error).__name__}: {error}"
    return problem(AppNotFound, "app-broken", module=path, error=shown, place=place)
