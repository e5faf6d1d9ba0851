"""Where a question is asked: a private server on its ground, a folder, and how long to take."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import bars
from bench.core import machine
from bench.core.result import Bar
from bench.grounds import GROUNDS
from bench.grounds.database import Database
from bench.grounds.ground import Ground
from tests.servers.private import PrivateServer

PATIENCE = 45.0
"""Seconds a question waits, at most, for others to leave the machine alone."""


@dataclass
class Stage:
    """What a question needs. The server is started when first asked for."""

    ground: Ground
    quick: bool = False
    folder: Path = field(default_factory=Path)
    _server: PrivateServer | None = None
    _closing: ExitStack = field(default_factory=ExitStack)

    def say(self, line: str) -> None:
        """Tell how it goes, beside the results."""
        print(f"    {line}", file=sys.stderr, flush=True)

    def few(self, many: int, quick: int) -> int:
        """A number of jobs or rounds: fewer in a quick run."""
        return quick if self.quick else many

    def bar(self, figure: str, kind: str = "") -> Bar | None:
        """What a figure must reach here, or on another kind of database than the server's."""
        return bars.bar(kind or self.ground.kind, figure)

    def quiet(self) -> None:
        """Wait until others leave the machine alone, or patience is over."""
        others = machine.wait_for_quiet(2.0 if self.quick else PATIENCE)
        if others > 0.25:
            self.say(f"others use {others:.1f} cores")

    @property
    def server(self) -> PrivateServer:
        """The server, with its defaults for durability."""
        if self._server is None:
            self._server = self._closing.enter_context(self.ground.server())
        return self._server

    @property
    def started(self) -> bool:
        """Whether a question has asked for the server yet."""
        return self._server is not None

    def cpu_seconds(self) -> float:
        """Processor time of this run so far: ours, our ended children's, and the server's."""
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        return ours + (self._server.cpu_seconds() if self._server else 0.0)

    @property
    def log(self) -> Path:
        """What child processes say on standard error."""
        return self.folder / "children.log"

    def database(self, name: str) -> AbstractContextManager[Database]:
        """A new database with dibs' tables, dropped afterwards. Not under the bare name: LIBRARY is a word of SQL."""
        return self.ground.database(self.server, f"bench_{name}")

    @contextmanager
    def sqlite(self, name: str) -> Iterator[str]:
        """The path of a SQLite file, deleted afterwards."""
        path = self.folder / f"{name}.db"
        try:
            yield str(path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def opened(server: str, quick: bool) -> Iterator[Stage]:
    """A stage that cleans up after itself."""
    with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=_scratch()) as folder, ExitStack() as closing:
        yield Stage(GROUNDS[server](), quick, Path(folder), _closing=closing)


def _scratch() -> str | None:
    """On a disk: /tmp may be memory, where a flush costs nothing."""
    return os.environ.get("DIBS_BENCH_FOLDER") or ("/var/tmp" if Path("/var/tmp").is_dir() else None)
