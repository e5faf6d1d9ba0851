"""`python -m bench [--quick] [--only NAME ...] [--server mysql97] [--json FILE] [--table]`: ask the questions."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from bench.core import machine, report
from bench.core.result import Result
from bench.core.stage import Stage, opened
from bench.grounds import GROUNDS

QUESTIONS = {
    "drain_async_1": "bench.drain",
    "drain_async_2": "bench.drain",
    "drain_sync_1": "bench.drain",
    "pinned": "bench.pinned",
    "backlog_million": "bench.backlog",
    "scheduled_above": "bench.backlog",
    "enqueue_single": "bench.enqueue_single",
    "enqueue_ten": "bench.enqueue_ten",
    "enqueue_bulk": "bench.enqueue_bulk",
    "pickup": "bench.pickup",
    "pickup_sqlite": "bench.pickup",
    "sqlite_drain": "bench.sqlite_drain",
    "memory": "bench.memory",
    "help": "bench.help",
    "idle": "bench.idle",
    "idle_sqlite": "bench.idle",
    "library": "bench.library",
    "drivers": "bench.drivers",
}
"""Each question by name, and the module whose function of that name asks it."""
SLOW = ("memory",)
"""Not asked in a quick run, unless by name."""
UNUSUAL = {
    "postgres": ("drivers",),
    "mysql": ("pickup_sqlite", "sqlite_drain", "idle_sqlite", "memory", "help"),
}
"""Asked only by name on this kind of server: there is but one driver, or it is about something else than the server."""
LOCAL = machine.ROOT / "bench/results/local"


def main() -> int:
    """Ask, tell, keep."""
    chosen = _arguments()
    if chosen.show:
        print(report.markdown(report.load(chosen.show)))
        return 0
    results, failed = _ask_all(chosen.only or _usual(chosen), chosen.server, chosen.quick)
    file = chosen.json or LOCAL / f"{time.strftime('%Y%m%d-%H%M%S')}-{chosen.server}.json"
    if results:
        report.save(file, machine.describe(), results)
        print(f"\nkept in {os.path.relpath(file)}", file=sys.stderr)
    if chosen.table:
        print("\n" + report.markdown(results))
    missed = [result.name for result in results if result.reached is False]
    if missed:
        print(f"missed a bar: {', '.join(missed)}", file=sys.stderr)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure dibs beside plain SQL.")
    parser.add_argument("--quick", action="store_true", help="fewer jobs and rounds, about three minutes in all")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, metavar="NAME", help=", ".join(QUESTIONS))
    parser.add_argument("--server", choices=GROUNDS, default="postgres18", metavar="NAME", help=", ".join(GROUNDS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the results here, beside older ones")
    parser.add_argument("--table", action="store_true", help="also print a Markdown table for the README")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing, print the table of a file")
    return parser.parse_args()


def _usual(chosen: argparse.Namespace) -> list[str]:
    skipped = {*(SLOW if chosen.quick else ()), *UNUSUAL[GROUNDS[chosen.server]().kind]}
    return [name for name in QUESTIONS if name not in skipped]


def _ask_all(names: Sequence[str], server: str, quick: bool) -> tuple[list[Result], list[str]]:
    results, failed = [], []
    with opened(server, quick) as stage:
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                results.append(_ask(name, stage))
            except Exception:  # noqa: BLE001 - one broken question must not hide the answers to the others
                traceback.print_exc()
                failed.append(name)
            else:
                print(report.text(results[-1]) + "\n", flush=True)
    return results, failed


def _ask(name: str, stage: Stage) -> Result:
    stage.quiet()
    began, busy, ours = time.monotonic(), machine.busy_seconds(), stage.cpu_seconds()
    result: Result = getattr(importlib.import_module(QUESTIONS[name]), name)(stage)
    wall = time.monotonic() - began
    others = (machine.busy_seconds() - busy - (stage.cpu_seconds() - ours)) / wall
    result.about = {
        "date": machine.now(),
        "commit": machine.commit(),
        "server": stage.ground.title if stage.started else "none",
        "seconds": round(wall, 1),
        "others_cores": round(max(0.0, others), 2),
        "quick": stage.quick,
    }
    return result


if __name__ == "__main__":
    sys.exit(main())
