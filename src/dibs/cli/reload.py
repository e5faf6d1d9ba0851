"""Noticing that source files have changed: by watchfiles where it is installed, else by looking now and then."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_PAUSE = 0.5
_NAMES = (".py", ".toml")
_IGNORED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})


def changes(folder: Path, stop: threading.Event) -> Iterator[set[str]]:
    """The names of the files that have changed, each time some have, until `stop` is set."""
    if importlib.util.find_spec("watchfiles") is None:
        yield from _looked_for(folder, stop)
        return
    watchfiles = importlib.import_module("watchfiles")
    for found in watchfiles.watch(folder, stop_event=stop, watch_filter=lambda _, path: _ours(Path(path), folder)):
        yield {os.path.relpath(path, folder) for _, path in found}


def _looked_for(folder: Path, stop: threading.Event) -> Iterator[set[str]]:
    before = _times(folder)
    while not stop.wait(_PAUSE):
        now = _times(folder)
        changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        before = now
        if changed:
            yield {os.path.relpath(path, folder) for path in changed}


def _times(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _IGNORED]
        for name in files:
            if name.endswith(_NAMES):
                path = os.path.join(place, name)
                try:
                    found[path] = os.stat(path).st_mtime_ns
                except FileNotFoundError:
                    continue  # an editor has just replaced it: the next look sees it
    return found


def _ours(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts if path.is_relative_to(folder) else path.parts
    return path.suffix in _NAMES and not any(part.startswith(".") or part in _IGNORED for part in parts[:-1])
