"""Real processes are killed, stopped and cut off from their database: every promise holds, and something was tried.

Small doses, for every run of the tests; `python -m chaos` gives larger ones. What each scenario does and what the
checker asks is in docs/reliability.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.sabotage import BUGS
from chaos.scenario import Plan, carry_out
from chaos.scenarios import SCENARIOS
from tests.chaos.conftest import OpenPlace

SECONDS = 400
PATIENCE = 4.0
"""Other tests run beside these: time limits are four times those of a machine that does nothing else."""
SCALES = {"F1": 0.5, "F2": 0.5, "F3": 0.7, "F11": 0.5}


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("database", ["sqlite", "postgres18"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_promise_holds_while_this_happens(
    name: str, database: str, open_place: OpenPlace, tmp_path: Path
) -> None:
    place = open_place(database, name == "F3")
    verdict = carry_out(SCENARIOS[name](), place, Plan(scale=SCALES[name], patience=PATIENCE), tmp_path)
    assert verdict.passed, f"{verdict}\n{verdict.as_json()}"


SABOTAGES = [(name, "sqlite") for name, bug in BUGS.items() if "sqlite" in bug.databases] + [
    (name, "postgres18") for name, bug in BUGS.items() if bug.databases == ("postgres",)
]


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(("bug", "database"), SABOTAGES)
def test_the_checker_catches_a_bug_that_was_put_into_the_workers(
    bug: str, database: str, open_place: OpenPlace, tmp_path: Path
) -> None:
    plan = Plan(scale=0.5, patience=PATIENCE, sabotage=bug)
    verdict = carry_out(SCENARIOS[BUGS[bug].scenario](), open_place(database, False), plan, tmp_path)
    found = {violation.invariant for violation in verdict.violations}
    assert found & {*BUGS[bug].invariants}, f"not seen: {BUGS[bug].what}\n{verdict}"
