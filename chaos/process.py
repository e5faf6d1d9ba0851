"""A process of a run: `python -m chaos.process ROLE URL FOLDER OPTIONS`, with OPTIONS as JSON.

`worker` runs dibs' worker, `loop` a loop of the user's own around dequeue, heartbeat and ack, `producer` enqueues.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos import sabotage, witness
from chaos.application import POISONS, QUEUE, Application, ids, listen
from chaos.journal import Journal
from dibs import DibsError, Handle, Job, LeaseLost

PAUSE = 0.02
STEP = 0.01
KEYS = 7
"""How many unique keys the producers of a run share."""


def worker(application: Application, options: dict[str, Any]) -> None:
    """dibs' own worker, until a signal."""
    listen(application.journal)
    runtime = application.jobs.worker([QUEUE], **options)
    application.journal.write("ready", slots=options["concurrency"])
    runtime.run()


def loop(application: Application, options: dict[str, Any]) -> None:
    """A user's own loop: one job at a time, worked on in steps, with a heartbeat now and then or without."""
    stopping = _stopping()
    application.journal.write("ready", slots=1)
    while not stopping:
        try:
            for job in application.jobs.dequeue([QUEUE], lease=options["lease"]):
                _work(application, job, **options)
        except DibsError as error:
            application.journal.write("trouble", text=str(error)[:200])
        time.sleep(PAUSE)


def _stopping() -> list[int]:
    """Not empty any more once the process has been asked to end."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    return asked


def _work(application: Application, job: Job, lease: float, beats: bool) -> None:
    journal, claim = application.journal, ids(job)
    journal.write("start", attempt=job.attempts, **claim)
    beat_at = time.monotonic()
    for _ in range(max(1, round(job.payload["ms"] / 1000 / STEP))):
        time.sleep(STEP)
        if beats and time.monotonic() - beat_at > lease / 3:
            beat_at = time.monotonic()
            if not application.jobs.heartbeat(job, extend=lease):
                journal.write("lost", **claim)
                return
    journal.write("effect", **claim)
    journal.write("end", how="returned", **claim)
    _ack(application, job, claim)


def _ack(application: Application, job: Job, claim: dict[str, Any]) -> None:
    """Until it is known what became of it."""
    while True:
        application.journal.write("ack.invoke", **claim)
        try:
            application.jobs.ack(job, {"token": job.token})
        except LeaseLost:
            application.journal.write("ack.lost", **claim)
        except DibsError as error:
            application.journal.write("ack.info", text=str(error)[:200], **claim)
            time.sleep(PAUSE)
            continue
        else:
            application.journal.write("ack.ok", **claim)
        return


def producer(application: Application, options: dict[str, Any]) -> None:
    """Enqueue numbered jobs at a steady pace, one by one and in batches, until a signal or the last of `most`.

    What gets no answer is not asked again: whether it was stored is for the checker to find out.
    """
    dice, stopping = random.Random(options["seed"]), _stopping()
    tasks, (low, high) = options["tasks"], options["ms"]
    application.journal.write("ready", slots=0)
    n = options["first"]
    end = n + options["most"]
    while n < end and not stopping:
        size = min(end - n, dice.choice((1, 1, 1, 20)))
        batch = [(n + place, dice.choice(tasks), dice.randint(low, high)) for place in range(size)]
        _enqueue(application, batch, dice.randrange(KEYS) if size == 1 and n % 2 else None)
        n += size
        time.sleep(size / options["rate"])


def _enqueue(application: Application, batch: list[tuple[int, str, int]], key: int | None) -> None:
    jobs, journal = application.jobs, application.journal
    unique = None if key is None else f"key-{key}"
    for n, task, _ in batch:
        journal.write("enqueue.invoke", n=n, task=task, key=unique)
    wanted = [(task, {"n": n} if task in POISONS else {"n": n, "ms": ms}) for n, task, ms in batch]
    try:
        if len(wanted) == 1:
            handles: Sequence[Handle[Any]] = [jobs.enqueue(*wanted[0], unique=unique)]
        else:
            handles = jobs.enqueue_many([jobs.job(*one) for one in wanted])
    except DibsError as error:
        for n, *_ in batch:
            journal.write("enqueue.info", n=n, text=str(error)[:200])
        return
    for (n, *_), handle in zip(batch, handles, strict=True):
        journal.write("enqueue.ok", n=n, job=handle.id, new=handle.created)


ROLES = {"worker": worker, "loop": loop, "producer": producer}


def _end_with_the_run() -> None:
    """Standard input is a pipe from whoever started this: it closes when that process is gone, however it went."""
    os.read(0, 1)
    os._exit(1)


def main() -> int:
    """Be a process of the run."""
    threading.Thread(target=_end_with_the_run, name="leash", daemon=True).start()
    role, url, folder, options = sys.argv[1], sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4])
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    journal = Journal(folder, role)
    broken = options.pop("sabotage", None)
    application = Application(url, journal)
    witness.watch(journal)
    witness.watch_conflicts(journal, application.jobs.store.dialect)
    if broken:
        sabotage.apply(broken, application.jobs)
        sabotage.BUGS[broken].patch()
    ROLES[role](application, options)
    journal.write("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
