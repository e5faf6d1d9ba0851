"""The installed command `dibs`, run as people and scripts run it: in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "dibs")
PATIENCE = 60.0
_AT_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes the screen the one whose Ctrl-C reaches the command: what a session opens first is its terminal."""
SHOP = """
from dibs import Dibs

jobs = Dibs()


@jobs.task(queue="mail")
def greet(name: str, times: int = 1) -> str:
    return " ".join([f"hello {name}"] * times)


@jobs.task(max_attempts=1)
def fail(why: str = "no luck") -> None:
    raise ValueError(why)
"""


@dataclass(frozen=True)
class Answer:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines on standard output."""
        return self.out.splitlines()


class Terminal:
    """A folder and an environment in which commands are run."""

    def __init__(self, folder: Path, url: str | None = None, **environment: str) -> None:
        self.folder = folder
        kept = ("PATH", "HOME", "SYSTEMROOT", "TMPDIR")
        self.environment = {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **({"DIBS_URL": url} if url else {}),
            "LANG": "C.UTF-8",
            "COLUMNS": "200",
            "PYTHONWARNINGS": "error",
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), f"dibs-bytecode-{os.getuid()}")),
            **environment,
        }

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *arguments: object, code: int = 0, **environment: str) -> Answer:
        """Run a command to its end and check its exit code; no command ever shows a traceback."""
        done = subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        answer = Answer(done.returncode, done.stdout, done.stderr)
        assert answer.code == code, f"exit code {answer.code}, not {code}:\n{answer.out}\n{answer.err}"
        if "--debug" not in arguments:
            assert "Traceback" not in answer.err, answer.err
        return answer

    @contextmanager
    def start(self, *arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """A command in the background; it is killed if the test leaves it running."""
        process = subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE)

    def at_screen(self, *arguments: object, keys: tuple[tuple[str, bytes], ...] = (), **environment: str) -> Answer:
        """Run a command at a terminal of its own; each key is pressed when its text is on the screen."""
        screen, theirs = pty.openpty()
        given = {**self.environment, "TERM": "xterm", "COLUMNS": "150", "LINES": "40", **environment}
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", _AT_TERMINAL, COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=given,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            shown = _converse(screen, list(keys))
            return Answer(process.wait(PATIENCE), shown, "")
        finally:
            os.close(screen)
            process.kill()
            process.wait()


def _converse(screen: int, keys: list[tuple[str, bytes]]) -> str:
    """Read the screen to the end; press the next key when its text is there and nothing moves, as a person would."""
    shown, deadline = "", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not select.select([screen], [], [], 0.05)[0]:
            if keys and keys[0][0] in shown:
                os.write(screen, keys.pop(0)[1])
            continue
        try:
            said = os.read(screen, 65_536)
        except OSError:  # how Linux says that the other side has hung up
            return shown
        if not said:
            return shown
        shown += said.decode(errors="replace")
    raise AssertionError(f"the command did not end; the screen shows:\n{shown}")


def line_with(process: subprocess.Popen[str], text: str) -> str:
    """Read the standard error of a running command until a line holds a text."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if text in line:
            return line
    raise AssertionError(f"{text!r} never came:\n{''.join(said)}")


def interrupt(process: subprocess.Popen[str]) -> int:
    """Send what Ctrl-C sends, and wait for the exit code."""
    process.send_signal(signal.SIGINT)
    return process.wait(PATIENCE)
