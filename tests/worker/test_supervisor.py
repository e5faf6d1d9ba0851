"""The supervisor: what ends by itself is started again, and what does not end is killed."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dibs.worker import supervisor as module
from dibs.worker.supervisor import Supervisor
from tests.support.waiting import wait_until

WRITE_DOWN = """
import os, signal, sys
from pathlib import Path

with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
END_WELL = WRITE_DOWN
FAIL = WRITE_DOWN + "sys.exit(3)"
LISTEN = WRITE_DOWN + "signal.pause()"
POLITE = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n{LISTEN}"
DEAF = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{WRITE_DOWN}\nwhile True:\n    signal.pause()"


class Crew:
    """A supervisor at work in a thread, and the process ids its processes have written down."""

    def __init__(self, program: str, file: Path, threads: ThreadPoolExecutor, **options: Any) -> None:
        command = [sys.executable, "-S", "-c", program, str(file)]
        self.supervisor = Supervisor(command, 2, **{"grace": 0.0, **options})
        self._file = file
        self.code: Future[int] = threads.submit(self.supervisor.run)

    @property
    def pids(self) -> list[int]:
        """Of all that have started so far."""
        return [int(line) for line in self._file.read_text().splitlines()] if self._file.exists() else []

    def ask(self) -> None:
        """What the first signal does, and the second."""
        self.supervisor._ask()


Hire = Callable[..., Crew]


@pytest.fixture
def hire(tmp_path: Path) -> Iterator[Hire]:
    """Starts supervisors, each told to stop at the end."""
    hired: list[Crew] = []
    with ThreadPoolExecutor() as threads:

        def start(program: str, **options: Any) -> Crew:
            hired.append(Crew(program, tmp_path / f"pids-{len(hired)}", threads, **options))
            return hired[-1]

        yield start
        for crew in hired:
            for pid in crew.pids:
                if not crew.code.done() and _lives(pid):
                    os.kill(pid, signal.SIGKILL)
            crew.ask()


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("program", "words"), [(END_WELL, "without an error"), (FAIL, "with code 3")])
def test_a_process_that_ends_by_itself_is_told_and_replaced(
    hire: Hire, caplog: pytest.LogCaptureFixture, program: str, words: str
) -> None:
    crew = hire(program)
    wait_until(lambda: len(crew.pids) >= 4, "the successors of both processes")
    assert not crew.code.done()
    crew.ask()
    assert crew.code.result(10) in (0, 1)
    assert words in caplog.text


def test_a_process_that_somebody_else_told_to_stop_is_replaced(hire: Hire, caplog: pytest.LogCaptureFixture) -> None:
    crew = hire(LISTEN)
    wait_until(lambda: len(crew.pids) == 2, "the start of both processes")
    os.kill(crew.pids[0], signal.SIGTERM)
    wait_until(lambda: len(crew.pids) == 3, "the successor")
    assert f"with code {-signal.SIGTERM}" in caplog.text
    crew.ask()
    assert crew.code.result(10) == 0


def test_a_process_that_has_ended_by_itself_is_not_well(hire: Hire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.random, "uniform", lambda _least, _most: 1_000.0)
    crew = hire(END_WELL)
    wait_until(lambda: len(crew.pids) == 2, "the start of both processes")
    wait_until(lambda: all(crew.supervisor.health().values()), "both to be missed")


def test_until_empty_an_end_without_an_error_is_the_end(hire: Hire, caplog: pytest.LogCaptureFixture) -> None:
    crew = hire(END_WELL, until_empty=True)
    assert crew.code.result(10) == 0
    assert len(crew.pids) == 2
    assert set(crew.supervisor.health().values()) == {0.0}
    assert not caplog.records


@pytest.mark.parametrize(("asked", "grace"), [(1, 0.1), (2, 3_600.0), (3, 3_600.0)])
def test_a_process_that_does_not_end_is_killed_after_the_grace_and_soon_after_a_second_signal(
    hire: Hire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, asked: int, grace: float
) -> None:
    monkeypatch.setattr(module, "MARGIN", 0.1)
    crew = hire(DEAF, grace=grace)
    wait_until(lambda: len(crew.pids) == 2, "the start of both processes")
    for _ in range(asked):
        crew.ask()
    assert crew.code.result(10) == 1
    assert not any(_lives(pid) for pid in crew.pids)
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


def test_a_suspended_process_is_killed_too(
    hire: Hire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MARGIN", 0.5)
    crew = hire(POLITE)
    wait_until(lambda: len(crew.pids) == 2, "the start of both processes")
    os.kill(crew.pids[0], signal.SIGSTOP)
    crew.ask()
    assert crew.code.result(10) == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_later_signal_never_gives_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    now, supervisor = 100.0, Supervisor(["none"], 1, grace=2.0)
    os.close(supervisor._leash)
    os.close(supervisor._held_end)
    assert supervisor._end_by == math.inf
    supervisor._ask()
    assert supervisor._end_by == 102.0 + module.MARGIN
    now = 101.0
    supervisor._ask()
    assert supervisor._end_by == 101.0 + module.MARGIN
    now = 105.0
    supervisor._ask()
    assert supervisor._end_by == 101.0 + module.MARGIN
