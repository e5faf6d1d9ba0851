"""What happened in a run, in numbers: also what shows that it tried anything at all."""

from __future__ import annotations

from collections import Counter

from chaos.history import History
from chaos.tables import Tables


def counts(history: History, tables: Tables) -> dict[str, int]:
    """All counts of a run."""
    logs = Counter(event["what"] for event in history.of("log"))
    kinds = Counter(failure.kind for failure in tables.failures)
    return {
        **_jobs(history, tables),
        **_runs(history, tables),
        "kills": len(history.of("kill")),
        "pauses": len(history.of("cont")),
        "outages": len(history.of("up")),
        "claims": len(history.claims),
        "beats": len(history.of("beat.ok")),
        "reclaims": kinds["lease lost"],
        "child_crashes": kinds["crash"],
        "errors": kinds["error"],
        "told": len(history.of("lost")),
        "stale_rejected": len(history.of("ack.lost")) + logs["stale"],
        "reconnects": logs["works again"],
        "conflicts": len(history.of("conflict")),
    }


def _jobs(history: History, tables: Tables) -> dict[str, int]:
    promised = {event["job"] for event in history.of("enqueue.ok")}
    outcomes = Counter(row.outcome for row in tables.final)
    return {
        "promised": len(promised),
        "unknown": len(history.of("enqueue.info")),
        "recovered": len({row.id for row in tables.final} - promised),
        "key_met": sum(not event["new"] for event in history.of("enqueue.ok")),
        "completed": outcomes["completed"],
        "dead": outcomes["dead"],
        "live": len(tables.live),
    }


def _runs(history: History, tables: Tables) -> dict[str, int]:
    """Runs of handlers, and of those: retries of what failed, and duplicates, whose first run may have had effects."""
    lost = {loss.claim for loss in tables.losses()}
    runs = history.all_runs()
    return {
        "runs": len(runs),
        "duplicates": sum(run.claim in lost for run in runs),
        "killed_runs": sum(run.died is not None for run in runs),
        "kills_of_runs": len({run.died.mono for run in runs if run.died is not None}),
    }
