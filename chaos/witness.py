"""Writes into the journal what the database granted: each claim, each extended lease, and until when it holds; and
what it refused because of somebody else: transactions of dibs' own that are played again, or are given up."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from typing import Any

from chaos.journal import Journal
from dibs import DibsError
from dibs.door import working
from dibs.model.duration import Micros
from dibs.model.job import Row
from dibs.store import access, settle
from dibs.store import claim as claims
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.worker import keeper

Held = Sequence[tuple[str, int, Micros | None]]


def watch(journal: Journal) -> None:
    """From now on every lease this process is given or extends is in its journal, before it is used."""
    grant, extend = claims.claim, settle.beat

    def claim(*given: Any) -> Operation[list[Row]]:
        rows = yield from grant(*given)
        for row in rows:
            journal.write("claim.ok", job=row[0], token=row[3], attempt=row[4], until=row[8])
        return rows

    def beat(dialect: Dialect, held: Held, lease: Micros) -> Operation[set[str]]:
        sent = time.time_ns() // 1000  # the database extends later, by its own clock: this is the least it can be
        lost = yield from extend(dialect, held, lease)
        for job, token, _ in held:
            if job not in lost:
                journal.write("beat.ok", job=job, token=token, until=sent + lease)
        return lost

    claims.__dict__["claim"] = claim
    for module in (keeper, working):
        module.__dict__["beat"] = beat


def watch_conflicts(journal: Journal, dialect: Dialect) -> None:
    """From now on every conflict that a transaction of dibs' own meets is in the journal, and what becomes of it."""
    worth, call = dialect.replayable, access.Store.call

    def replayable(error: BaseException) -> bool:
        again = worth(error)
        if again:
            at_commit = any(frame.name == "commit" for frame in traceback.extract_tb(error.__traceback__))
            journal.write("conflict", at="commit" if at_commit else "statement", text=str(error)[:80])
        return again

    def calling(store: access.Store, *given: Any) -> Any:
        try:
            return call(store, *given)
        except DibsError as error:
            if error.__cause__ is not None and worth(error.__cause__):
                journal.write("conflict.raised", text=str(error)[:80])
            raise

    dialect.replayable = replayable
    access.Store.call = calling  # type: ignore[method-assign, assignment]
