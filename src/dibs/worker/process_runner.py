"""Runs handlers in processes of their own: for work that keeps the CPU busy, and for work that may crash."""

from __future__ import annotations

import asyncio
import importlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from dibs.errors import DibsError
from dibs.model.duration import SECOND
from dibs.model.job import Job, Row
from dibs.model.json_text import decode, encode, write
from dibs.model.options import JobOptions
from dibs.model.outcome import Control, Problem, after_error, control_of, describe
from dibs.task.registry import Definition, awaited
from dibs.worker.attempt import CurrentJob, _current
from dibs.worker.hold import Hold
from dibs.worker.outcomes import Outcomes, Settlement
from dibs.worker.runner import Finish
from dibs.worker.thread_runner import Pool

_log = logging.getLogger("dibs.worker")
_context = multiprocessing.get_context("spawn")
NO_PROCESS_DELAY = 5 * SECOND
"""How long a job waits for which no process could be started: that is the machine's trouble, not the job's."""


class Child:
    """A process that runs one handler at a time, and its end of the pipe."""

    def __init__(self) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process: SpawnProcess = _context.Process(target=attend, args=(theirs,), name="dibs-handler", daemon=True)
        self._process.start()
        theirs.close()

    def run(self, attempt: CurrentJob) -> Any:
        """Run a handler there; its answer, or EOFError if the process dies."""
        job = attempt.job
        self._pipe.send((_place(attempt._definition), tuple(job.row), job.queue, job.priority, job.locked_by))
        return decode(self._pipe.recv_bytes())

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()

    def end(self) -> int | None:
        """Close the pipe, wait for the process, answer its exit code."""
        self._pipe.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


class ProcessRunner(Pool):
    """Each thread of the pool owns a child process; a killed one is replaced when the next job comes."""

    kind = "process"

    def __init__(self, slots: int, hold: Hold, outcomes: Outcomes, finish: Finish) -> None:
        super().__init__(slots, hold, outcomes, finish)
        self._children: dict[str, Child] = {}

    def _attend(self, attempt: CurrentJob) -> None:
        self.moved_at = started = time.monotonic()
        if self._given_up(attempt, started):
            return
        attempt._started = started
        self._end(attempt, self._run_in_child(attempt))
        for pace in (self._hold.pace, self._hold.pace_of_processes):
            pace.record(time.monotonic() - started)

    def _run_in_child(self, attempt: CurrentJob) -> Settlement | None:
        name = threading.current_thread().name
        try:
            child = self._children.get(name) or Child()
            self._children[name] = child
            attempt._stop = child.kill
            if attempt._abort:  # told before there was anything to stop
                child.kill()
            answer = child.run(attempt)
        except (EOFError, OSError) as error:
            attempt._stop = None
            code = self._dismiss(name)
            return None if attempt._abort else self._crashed(attempt, code, error)
        attempt._stop = None
        if attempt._abort:
            # It answered while it was being killed: the next job must not be taken for the one that died.
            self._dismiss(name)
        return self._settlement(attempt, answer)

    def _dismiss(self, name: str) -> int | None:
        child = self._children.pop(name, None)
        return child.end() if child is not None else None

    def stop(self, timeout: float) -> bool:
        """End the threads and their processes."""
        ended = super().stop(timeout)
        for child in list(self._children.values()):
            if not ended:
                child.kill()
            child.end()
        return ended

    def abort(self, attempt: CurrentJob) -> None:
        """Kill the process that runs the handler."""
        if attempt._stop is not None:
            attempt._stop()

    def _settlement(self, attempt: CurrentJob, answer: tuple[str, Any]) -> Settlement:
        kind, value = answer
        if kind == "result":
            return self._outcomes.returned(attempt, None if value is None else decode(value))
        if kind == "control":
            return self._outcomes.raised(attempt, control_of(*value))
        return after_error(attempt._counters(), self._outcomes.policy(attempt), Problem(*value))

    def _crashed(self, attempt: CurrentJob, code: int | None, error: Exception) -> Settlement:
        if code is None:
            _log.error("no process can be started for job %s, which is put back: %s", attempt.id, error)
            return self._outcomes.returned_unrun(attempt, NO_PROCESS_DELAY)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return self._outcomes.crashed(attempt, f"The process that ran the handler {how}")


def _place(definition: Definition) -> tuple[str, str, str]:
    """Where a child finds the handler: module, qualified name, task name."""
    function = definition.function
    return function.__module__, function.__qualname__, definition.name


def attend(pipe: Connection) -> None:
    """The child's life: run what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to the whole group: the worker decides what is to end
    threading.Thread(target=_die_with_the_worker, name="dibs-leash", daemon=True).start()
    while True:
        try:
            place, row, queue, priority, locked_by = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send_bytes(write(_run_one(place, Job(Row._make(row), queue, priority, locked_by))))


def _die_with_the_worker() -> None:
    """A worker that was killed has lost its lease: what runs for it here must not go on for long."""
    worker = multiprocessing.parent_process()
    if worker is not None:
        worker.join()
        os._exit(1)


def _run_one(place: tuple[str, str, str], job: Job) -> tuple[str, Any]:
    """Run one handler. Answers what becomes JSON, like all that dibs reads: a result, a decision, or a problem."""
    try:
        definition = _find(*place)
        attempt = CurrentJob(job, definition, time.monotonic(), 0.0)
        attempt._started = time.monotonic()
        _current.set(attempt)
        value = _call(definition, job)
    except Control as control:
        return "control", control.told()
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its job's failure
        return "problem", describe(error)
    if isinstance(value, Control):
        return "control", value.told()
    return _as_result(value)


def _as_result(value: Any) -> tuple[str, Any]:
    try:
        return "result", None if value is None else encode(value, "result").decode()
    except DibsError as error:
        return "problem", describe(error)


def _call(definition: Definition, job: Job) -> Any:
    value = definition.signature.call(definition.function, job)
    if definition.is_async:
        return asyncio.run(value)
    return value


def _find(module: str, qualname: str, name: str) -> Definition:
    """The definition in this process: the decorated object knows it, a bare function gets a new one."""
    if module == "__main__" and "__mp_main__" in sys.modules:
        module = "__mp_main__"
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    definition = getattr(found, "definition", None)
    if isinstance(definition, Definition):
        return definition
    return Definition(name, found, JobOptions(), "process", awaited(found))
