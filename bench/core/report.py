"""Results for people, for the README, and for the next run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.core.machine import Machine
from bench.core.result import Figure, Result

_VERDICT = {True: "reached", False: "MISSED", None: ""}


def text(result: Result) -> str:
    """One question's figures, one per line."""
    lines = [f"{result.name}: {result.title}"]
    for found in result.figures:
        bar = f"bar {found.bar}  {_VERDICT[found.reached]}" if found.bar else ""
        lines.append(f"  {found.name:<42} {number(found):>18}  {_spread(found):<22} {bar}".rstrip())
    if result.note:
        lines.append(f"  ({result.note})")
    return "\n".join(lines)


def markdown(results: Sequence[Result]) -> str:
    """Every figure that has a bar, then what it was compared with."""
    lines = ["| measured | bar | figure | spread | also |", "|---|--:|--:|--:|---|"]
    for result in results:
        others = "; ".join(f"{found.name} {number(found)}" for found in result.figures if found.bar is None)
        for index, found in enumerate(_told(result)):
            also = (others if found.bar else _rest(result)) if index == 0 else ""
            cells = (f"{result.title}: {found.name}", found.bar or "", _marked(found), _spread(found), also)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """The table of the README: every figure that has a bar, with the rates behind it."""
    lines = ["| measured | figure | bar | rates |", "|---|--:|--:|---|"]
    for result in results:
        rates = ", ".join(
            f"{found.name} {number(found)}" for found in result.figures if found.unit == "jobs/s" and not found.bar
        )
        for index, found in enumerate(found for found in _told(result) if found.bar):
            cells = (f"{result.title}: {found.name}", _marked(found), found.bar, rates if index == 0 else "")
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _told(result: Result) -> Sequence[Figure]:
    return [found for found in result.figures if found.bar is not None] or result.figures[:1]


def _marked(found: Figure) -> str:
    return number(found) + (" **missed**" if found.reached is False else "")


def _rest(result: Result) -> str:
    return "; ".join(f"{found.name} {number(found)}" for found in result.figures[1:])


def save(file: Path, machine: Machine, results: Sequence[Result]) -> None:
    """Write the results; those of questions not asked this time stay as they were."""
    kept: dict[str, Any] = json.loads(file.read_text())["results"] if file.exists() else {}
    kept |= {result.name: result.as_json() for result in results}
    file.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine.as_json(), "results": kept}
    file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def where(file: Path) -> str:
    """What was measured on, in one sentence."""
    told = json.loads(file.read_text())
    machine, results = told["machine"], told["results"].values()
    servers = sorted({result["server"] for result in results} - {"none"})
    days = sorted({result["date"][:10] for result in results})
    if any("sqlite" in name for name in told["results"]):
        servers.append(f"SQLite {machine['sqlite']}")
    return (
        f"{', '.join(servers)} and Python {machine['python']}, all on one machine with "
        f"{machine['cores']} cores ({machine['cpu']}) that others share, on {' and '.join(days)}"
    )


def load(file: Path) -> list[Result]:
    """Read what `save` wrote."""
    return [Result.from_json(name, told) for name, told in json.loads(file.read_text())["results"].items()]


def number(found: Figure) -> str:
    """A value with its unit."""
    return f"{_plain(found.value)} {found.unit}".strip()


def _spread(found: Figure) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"{_plain(found.low)} to {_plain(found.high)}"


def _plain(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
