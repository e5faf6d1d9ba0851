"""Handlers in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dibs import Backoff, Dibs
from tests.support.databases import Database
from tests.support.waiting import wait_until
from tests.worker import handlers
from tests.worker.by_hand import ByHand, by_hand
from tests.worker.conftest import Launch


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def _running(hand: ByHand, folder: Path) -> int:
    """The process id of the handler `hang` that was just started."""
    path = folder / "pid"
    wait_until(path.exists, "the start of the handler")
    pid = int(path.read_text())
    path.unlink()
    return pid


def test_a_handler_runs_in_another_process_and_knows_its_job(jobs: Dibs) -> None:
    handlers.register(jobs)
    handle = jobs.enqueue("whoami")
    with by_hand(jobs) as hand:
        hand.run()
    found = jobs.get(handle.id).result
    assert found["pid"] != os.getpid()
    assert (found["attempt"], found["child"]) == (1, True)


def test_plain_and_async_handlers_answer_from_their_process(jobs: Dibs) -> None:
    handlers.register(jobs)
    handles = [jobs.enqueue(name, {"n": 21}) for name in ("double", "double_async")]
    with by_hand(jobs) as hand:
        assert hand.run_all() == 2
    assert [handle.result(timeout=0) for handle in handles] == [42, 42]


@pytest.mark.parametrize(("name", "words"), [("fail", "broken"), ("unfit", "object"), ("leave_politely", "3")])
def test_what_a_handler_raises_in_its_process_is_told_here(jobs: Dibs, name: str, words: str) -> None:
    handlers.register(jobs, max_attempts=1)
    payload = {"fail": {"text": "broken"}, "leave_politely": {"code": 3}}.get(name)
    handle = jobs.enqueue(name, payload, max_attempts=1)
    with by_hand(jobs) as hand:
        hand.run()
    found = jobs.get(handle.id)
    assert (found.status, found.crashes) == ("dead", 0)
    assert words in (found.last_error or "")


@pytest.mark.parametrize(
    ("what", "status", "attempts"),
    [("snooze", "scheduled", 0), ("retry", "retrying", 1), ("cancel", "cancelled", 1), ("discard", "discarded", 1)],
)
def test_a_handler_can_decide_from_its_process(jobs: Dibs, what: str, status: str, attempts: int) -> None:
    handlers.register(jobs)
    handle = jobs.enqueue("decide", {"what": what})
    with by_hand(jobs) as hand:
        hand.run()
    found = jobs.get(handle.id)
    assert (found.status, found.attempts) == (status, attempts)


@pytest.mark.parametrize(("what", "reason"), [("gone", "gone"), ("beyond", "beyond")])
def test_a_decision_that_holds_what_cannot_travel_arrives_all_the_same(jobs: Dibs, what: str, reason: str) -> None:
    handlers.register(jobs)
    handles = [jobs.enqueue("decide_oddly", {"what": what}) for _ in range(2)] + [jobs.enqueue("double", {"n": 1})]
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 3
    assert [str(handle.status()) for handle in handles] == ["discarded", "discarded", "completed"]
    assert jobs.get(handles[0].id).last_error == reason


@pytest.mark.parametrize(
    ("name", "payload", "words"),
    [("leave", {"code": 7}, "exit code 7"), ("kill_myself", {}, "SIGKILL")],
)
def test_a_process_that_dies_counts_as_a_crash_and_the_job_is_dead_after_the_last(
    jobs: Dibs, name: str, payload: dict[str, int], words: str
) -> None:
    jobs.configure("default", backoff=Backoff.none(), max_attempts=9)
    handlers.register(jobs, max_crashes=2)
    handle = jobs.enqueue(name, payload)
    with by_hand(jobs) as hand:
        assert hand.run_all() == 2
    found = jobs.get(handle.id)
    assert (found.status, found.crashes, found.attempts) == ("dead", 2, 2)
    assert [error.kind for error in found.errors] == ["crash", "crash"]
    assert words in (found.last_error or "")


def test_after_a_crash_the_next_job_gets_a_new_process(jobs: Dibs) -> None:
    handlers.register(jobs, max_crashes=1)
    jobs.enqueue("leave", {"code": 1})
    good = jobs.enqueue("double", {"n": 1})
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 2
    assert good.result(timeout=0) == 2


def test_a_job_past_its_time_limit_is_killed_and_that_is_no_crash(jobs: Dibs, tmp_path: Path) -> None:
    handlers.register(jobs, timeout="10s")
    handle = jobs.enqueue("hang", {"folder": str(tmp_path)}, max_attempts=1)
    with by_hand(jobs) as hand:
        [attempt] = hand.fetch()
        pid = _running(hand, tmp_path)
        attempt._started -= 11
        hand.watch()
        hand.settle()
        wait_until(lambda: _gone(pid), "the end of the handler's process")
    found = jobs.get(handle.id)
    assert (found.status, found.crashes, found.errors[0].kind) == ("dead", 0, "timeout")


def test_a_process_whose_job_is_lost_is_killed_and_nothing_is_stored(jobs: Dibs, tmp_path: Path) -> None:
    handlers.register(jobs)
    handle = jobs.enqueue("hang", {"folder": str(tmp_path)})
    with by_hand(jobs) as hand:
        [attempt] = hand.fetch()
        pid = _running(hand, tmp_path)
        attempt._fence = 0.0
        hand.watch()
        wait_until(lambda: _gone(pid), "the end of the handler's process")
        assert (hand.held, hand.worker.settler.waiting) == ([], 0)
    assert handle.status() in ("claimed", "running")  # until somebody takes the lease back


def test_the_process_dies_with_a_worker_that_is_killed(jobs: Dibs, tmp_path: Path, launch: Launch) -> None:
    jobs.enqueue("hang", {"folder": str(tmp_path)})
    worker = launch("processes")
    path = tmp_path / "pid"
    wait_until(path.exists, "the start of the handler")
    pid = int(path.read_text())
    worker.send_signal(signal.SIGKILL)
    worker.wait(10)
    wait_until(lambda: _gone(pid), "the end of the handler's process")


def test_jobs_no_process_is_free_for_are_left_to_others(jobs: Dibs, tmp_path: Path) -> None:
    handlers.register(jobs)
    for _ in range(10):
        jobs.enqueue("hang", {"folder": str(tmp_path)})
    with by_hand(jobs, concurrency=16, processes_limit=1) as hand:
        hand.fetch()
        hand.settle(9)
        assert len(hand.held) == 1
        hand.fetch()
        assert len(hand.held) == 1, "what was handed back must not be claimed again and again"
        hand.worker.guard.lose(hand.held[0])
    assert {record.attempts for record in jobs.list(status="ready")} == {0}


def test_other_queues_go_on_while_no_process_is_free(jobs: Dibs, tmp_path: Path) -> None:
    handlers.register(jobs)

    @jobs.task(queue="light")
    async def quick(n: int) -> int:
        return n

    for n in range(3):
        jobs.enqueue("hang", {"folder": str(tmp_path)}, queue="heavy")
        quick.enqueue(n)
    with by_hand(jobs, concurrency=4, processes_limit=1) as hand:
        hand.fetch()
        hand.settle(3)
        wait_until(lambda: (hand.fetch(), hand.settle(0), len(jobs.list(status="completed")) == 3)[-1], "light jobs")
        assert [attempt.task for attempt in hand.held] == ["hang"]
        hand.worker.guard.lose(hand.held[0])


UNGUARDED = """
from dibs import Dibs

jobs = Dibs({url!r})


@jobs.task(run_in="process", max_crashes=1)
def square(n: int) -> int:
    return n * n


handle = square.enqueue(5)
with jobs.worker():
    print(handle.result(timeout=30))
"""


def test_a_program_without_a_guard_is_told_so_and_does_not_run_itself_again(
    jobs: Dibs, sqlite: Database, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(UNGUARDED.format(url=sqlite.url))
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert 'under: if __name__ == "__main__":' in ended.stderr
    assert [(record.task, record.status) for record in jobs.list()] == [("square", "dead")]
