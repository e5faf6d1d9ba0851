"""`dibs dev`: one worker in one process, started again whenever the code changes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from dibs.cli import output
from dibs.cli.grammar import argument, command, option, pass_target
from dibs.cli.kinds import Whole
from dibs.cli.names import complete_queue
from dibs.cli.problems import OK
from dibs.cli.target import Target
from dibs.messages import say


@command("dev", examples=("dibs dev", "dibs dev shop.jobs:jobs --queues mail"))
@argument("application", key="argument.app", metavar="[APP]", required=False)
@option("--queues", key="option.queues", metavar="NAME[:LIMIT],...", shell_complete=complete_queue)
@option("--concurrency", key="option.concurrency", type=Whole(1, 10_000))
@option("--once", key="option.once", is_flag=True)
@pass_target
def dev(target: Target, application: str | None, once: bool, **given: Any) -> int:
    """Migrates by itself, whatever the database: this is for development."""
    target.app = application or target.app
    if once:
        return _work(target, given)
    return Reloader([sys.executable, "-m", "dibs", *sys.argv[1:], "--once"], target.url).run()


def _work(target: Target, given: dict[str, Any]) -> int:
    from dibs.cli.worker import introduce, work

    found = target.application()
    found.dibs.migrate()
    introduce(found)
    return work(found, given)


class Reloader:
    """Keeps one child at work: a changed file ends it and starts the next. A child that failed waits for a change."""

    def __init__(self, command: list[str], url: str | None) -> None:
        from dibs.cli.configured import span
        from dibs.model.duration import seconds
        from dibs.worker.supervisor import LEASH

        self._command = command
        self._grace = span("grace", None)
        self._grace_seconds = seconds(self._grace)
        self._leash, self._held_end = os.pipe()
        self._environment = {**os.environ, LEASH: str(self._leash), **({"DIBS_URL": url} if url else {})}
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._end_by = math.inf
        self._lock = threading.Lock()

    def run(self) -> int:
        """Until a signal: the first asks the child to end, the second forces it."""
        from dibs.cli.reload import changes
        from dibs.cli.signals import signals_told
        from dibs.worker.signals import stopped_by_signals

        with signals_told(self._grace), stopped_by_signals(self._ask, self._ask):
            self._start()
            for changed in changes(Path.cwd(), self._stopping):
                if self._stopping.is_set():
                    break
                output.note(say("dev.changed", files=", ".join(sorted(changed)[:3])))
                self._end()
                self._start()
            self._end()
        return OK

    def _start(self) -> None:
        with self._lock:
            if self._stopping.is_set():  # asked between two children: nobody would tell this one
                return
            self._end_by = math.inf
            # In a session of its own a Ctrl-C at the terminal reaches it once, through us, and not twice.
            self._child = subprocess.Popen(
                self._command, env=self._environment, pass_fds=(self._leash,), start_new_session=True
            )

    def _end(self) -> None:
        """Wait for the end of the child; one that does not listen is killed."""
        with self._lock:
            if not self._stopping.is_set():
                self._tell(self._grace_seconds)
        child = self._child
        while child is not None and child.poll() is None:
            if time.monotonic() >= self._end_by:
                child.kill()
            with suppress(subprocess.TimeoutExpired):
                child.wait(0.1)

    def _ask(self) -> None:
        with self._lock:
            self._tell(0.0 if self._stopping.is_set() else self._grace_seconds)
            self._stopping.set()

    def _tell(self, grace: float) -> None:
        from dibs.worker.supervisor import MARGIN

        self._end_by = min(self._end_by, time.monotonic() + grace + MARGIN)
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()
