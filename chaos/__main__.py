"""`python -m chaos [--scenario F1] [--database postgres18] [--seed 1] [--scale 1] [--out file]`.

Without a scenario or database all of them are run. Exit code 0: everything held; 1: something did not; with a
sabotage it is the other way round, for then something must not hold.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from chaos.places import NAMES, opened
from chaos.sabotage import BUGS
from chaos.scenario import Plan, carry_out
from chaos.scenarios import SCENARIOS
from chaos.verdict import Verdict


def main() -> int:
    """Run what was asked for, print each verdict."""
    chosen = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is ended
    plan = Plan(chosen.seed, chosen.scale, chosen.sabotage, chosen.patience)
    verdicts: list[Verdict] = []
    folder = Path(tempfile.mkdtemp(prefix="dibs-chaos-"))
    for database in chosen.database or ("postgres18", "sqlite"):
        with opened(database, folder) as place:
            for name in chosen.scenario or ([BUGS[plan.sabotage].scenario] if plan.sabotage else SCENARIOS):
                verdicts.append(carry_out(SCENARIOS[name](), place, plan, folder))
                print(verdicts[-1], flush=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    if chosen.out:
        chosen.out.write_text("[" + ",\n".join(verdict.as_json() for verdict in verdicts) + "]\n")
    return 0 if all(_as_expected(verdict, plan) for verdict in verdicts) else 1


def _as_expected(verdict: Verdict, plan: Plan) -> bool:
    if plan.sabotage is None:
        return verdict.passed
    broken = {found.invariant for found in verdict.violations}
    return bool(broken & set(BUGS[plan.sabotage].invariants))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    kinds = ", ".join(f"{name} ({kind.what})" for name, kind in SCENARIOS.items())
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, metavar="NAME", help=kinds)
    parser.add_argument("--database", action="append", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--seed", type=int, default=1, help="reproduces what is done when and to whom")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies jobs and doses")
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies time limits, on a busy machine")
    bugs = "; ".join(f"{name}: {bug.what}" for name, bug in BUGS.items())
    parser.add_argument("--sabotage", choices=BUGS, metavar="BUG", help=f"put a bug into the workers ({bugs})")
    parser.add_argument("--out", type=Path, help="a file for all verdicts, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
