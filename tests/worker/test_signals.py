"""Signals reach a worker whichever of its threads the kernel gives them to, and stay with the process they were for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dibs.worker.signals import signals_heard, stopped_by_signals
from tests.support.waiting import wait_until
from tests.worker.conftest import Launch

ROOT = Path(__file__).resolve().parents[2]
HIT_ANOTHER_THREAD = """
import os, signal, sys, threading
from pathlib import Path
from dibs import Dibs, current_job

jobs = Dibs("sqlite://")
count = int(sys.argv[1])
never = threading.Event()


@jobs.task
def hit() -> None:
    for _ in range(count):  # as the kernel may choose any thread
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    never.wait()


@jobs.task
def fork(status: str) -> None:
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(7)
    Path(status).write_text(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


for word in sys.argv[2:]:
    fork.enqueue(word)
hit.using(priority=-1).enqueue()
print(jobs.worker(concurrency=1, grace="0s" if count == 1 else "60s").run())
"""


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Neither a handler nor a listener of a test outlives it."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert signal.set_wakeup_fd(-1) == -1


def _program(count: int, *status: Path) -> str:
    """Run a worker of which a thread that is not the main one gets SIGTERM; how many attempts it ran to their end."""
    command = [sys.executable, "-c", HIT_ANOTHER_THREAD, str(count), *map(str, status)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_signal_that_another_thread_gets_stops_the_worker() -> None:
    assert _program(count=1) == "0"


def test_a_second_signal_forces_whichever_thread_gets_it() -> None:
    assert _program(count=2) == "0"


def test_a_signal_for_a_forked_child_ends_the_child_and_not_the_worker(tmp_path: Path) -> None:
    status = tmp_path / "status"
    assert _program(1, status) == "1"
    assert status.read_text() == str(-signal.SIGTERM)


def test_a_signal_sent_to_a_suspended_worker_counts_when_it_goes_on(launch: Launch, tmp_path: Path) -> None:
    worker = launch("threads")
    log = tmp_path / "worker-0.log"
    wait_until(lambda: "starts on" in log.read_text(), "the start of the worker")
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
        worker.send_signal(number)
    assert worker.wait(20) == 0


def test_blocks_within_blocks_hear_and_so_does_who_listened_before() -> None:
    heard: list[str] = []
    came = threading.Semaphore(0)

    def hear(word: str) -> None:
        heard.append(word)
        came.release()

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno())
        try:
            with (
                signals_heard(lambda number: hear(signal.Signals(number).name)),
                stopped_by_signals(lambda: hear("ask"), lambda: hear("force")),
            ):
                for _ in range(2):
                    os.kill(os.getpid(), signal.SIGTERM)
                    assert [came.acquire(timeout=10) for _ in range(2)] == [True, True]
            assert ours.recv(9) == bytes([signal.SIGTERM] * 2)
        finally:
            signal.set_wakeup_fd(-1)
    assert sorted(heard[:2]) == ["SIGTERM", "ask"]
    assert sorted(heard[2:]) == ["SIGTERM", "force"]


def test_other_signals_of_the_program_are_none_of_the_workers_business() -> None:
    asked: list[str] = []
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: asked.append("own handler"))
    try:
        with stopped_by_signals(lambda: asked.append("ask"), lambda: asked.append("force")):
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert asked == ["own handler"]
