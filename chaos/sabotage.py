"""Bugs that are put into dibs on purpose, inside the processes of a run: the checker must see each of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dibs import Dibs
from dibs.store import reap, reaper
from dibs.store.statement import Block
from dibs.worker.attempt import CurrentJob
from dibs.worker.loop_runner import LoopRunner
from dibs.worker.outcomes import Settlement
from dibs.worker.settler import Settler

Changes = Sequence[tuple[str, str, str]]
SLOW = 3.0
"""Seconds a slow reaper takes between looking and acting."""


@dataclass(frozen=True, slots=True)
class Bug:
    """What is wrong, and the scenario and invariants that must tell.

    `changes` are made to statements (which one, what is replaced, by what); `patch` is called in each process.
    """

    what: str
    scenario: str
    invariants: tuple[str, ...]
    changes: Changes = ()
    patch: Callable[[], None] = lambda: None
    databases: tuple[str, ...] = ("postgres", "sqlite")


def _act_late() -> None:
    original = reap.take_back

    def late(*given: Any) -> Any:
        time.sleep(SLOW)
        return original(*given)

    reap.__dict__["take_back"] = late
    reaper.__dict__["SHARE"] = 0  # it would stay away for long after so slow a round


def _drop_batches() -> None:
    original = Settler._settle
    seen: list[int] = []

    def settle(self: Settler, batch: list[tuple[CurrentJob, Settlement]]) -> None:
        seen.append(len(batch))
        if len(seen) % 5:
            original(self, batch)
        else:
            self._hold.remove([attempt for attempt, _ in batch])

    setattr(Settler, "_settle", settle)  # noqa: B010 - a method is no name of its own to assign to


def _finish_first() -> None:
    original = LoopRunner._run

    async def run(self: LoopRunner, attempt: CurrentJob, carrier: Any) -> bool:
        self._finish(attempt, self._outcomes.returned(attempt, {"token": attempt.job.token}))
        attempt._settled = False
        return await original(self, attempt, carrier)

    setattr(LoopRunner, "_run", run)  # noqa: B010 - a method is no name of its own to assign to


HOST = socket.gethostname()
BUGS = {
    "no-fence": Bug(
        "an outcome is accepted whoever holds the job by now",
        "F2",
        ("I4",),
        (
            ("archive", "and j.token = e.token", ""),
            ("archive", "and j.token = e.value ->> 1", ""),
        ),
    ),
    "fence-on-the-host": Bug(
        "an outcome is accepted from whoever is on the holder's host, with whatever token",
        "F2",
        ("I4",),
        (
            ("archive", "j.token = e.token", f"j.worker_id like '{HOST}:%'"),
            ("archive", "j.token = e.value ->> 1", f"j.worker_id like '{HOST}:%'"),
        ),
    ),
    "claims-the-leased": Bug(
        "a claim takes what another worker holds",
        "F1",
        ("I5", "I6"),
        (("claim", "and lease_until is null", ""),),
    ),
    "claims-without-a-lock": Bug(
        "two claims at once read the same rows and both take them",
        "F1",
        ("I5", "I6"),
        (
            ("claim", "where ctid = any", "where id = any"),
            ("claim", "select ctid from", "select id from"),
            ("claim", "for update skip locked", ""),
        ),
        databases=("postgres",),
    ),
    "reaps-without-a-second-look": Bug(
        "a slow reaper takes back what it saw expired, without looking again",
        "F2",
        ("I5",),
        (("lock_expired", "and lease_until <", "and id is not null or lease_until is null and lease_until <"),),
        _act_late,
    ),
    "no-record": Bug(
        "a lease is taken back, and why is not written down",
        "F1",
        ("I6", "I9"),
        (("add_errors", "on conflict", "where false on conflict"), ("add_errors", "where true\nwhere", "where")),
    ),
    "forgets": Bug(
        "a job that ends after its first attempt is deleted, and does not come to the history",
        "F1",
        ("I1",),
        (
            ("archive", "from gone", "from gone where attempts > 1"),
            ("archive", "select j.id", "select j.id || 'x'"),
        ),
    ),
    "stores-half-of-a-batch": Bug(
        "enqueue_many says that all is stored, and a part of it is not",
        "F1",
        ("I1",),
        (("enqueue_batch", "where true", "where n.value ->> 2 <> 'nap'"),),
        databases=("sqlite",),
    ),
    "ignores-keys": Bug(
        "a unique key is made longer until it is free",
        "F1",
        ("I2",),
        (("enqueue_unique", ":unique_key", ":unique_key || :id"),),
    ),
    "forgets-by-birth": Bug(
        "finished jobs are kept from the day they were enqueued, not from their end",
        "F1",
        ("I1",),
        (("prune", "finished_at <", "created_at <"),),
    ),
    "counts-twice": Bug(
        "a crash is counted twice",
        "F1",
        ("I9",),
        (("put_back", "crashes + b.crash", "crashes + 2 * b.crash"),),
    ),
    "counts-at-failure": Bug(
        "an attempt is counted when it fails, not when it is claimed: a crash is no attempt",
        "F1",
        ("I9",),
        (
            ("claim", "attempts = attempts + 1", "attempts = attempts"),
            ("put_back", "attempts - b.refund", "attempts + 1 - b.refund - b.crash"),
        ),
    ),
    "no-refund": Bug(
        "a job that is snoozed or handed back unrun has lost an attempt",
        "F1",
        ("I9",),
        (("put_back", "attempts - b.refund", "attempts"),),
    ),
    "drops-batches": Bug("a batch of outcomes is forgotten now and then", "F1", ("I6",), patch=_drop_batches),
    "acks-before-work": Bug("a job is completed before its handler runs", "F1", ("I4",), patch=_finish_first),
}


def apply(name: str, jobs: Dibs) -> None:
    """Put the changed statements of a bug into one `Dibs`."""
    dialect = jobs.store.dialect
    blocks = dict(dialect.blocks)
    for statement, before, after in BUGS[name].changes:
        if statement in blocks:
            block = blocks[statement]
            blocks[statement] = Block(statement, block.text.replace(before, after), block.fresh)
    if BUGS[name].changes and all(block.text == dialect.blocks[at].text for at, block in blocks.items()):
        raise RuntimeError(f"the bug {name!r} finds nothing to break any more: dibs' SQL has changed")
    dialect.blocks = blocks
