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
        lines.append(f"  {found.name:<42} {_number(found):>18}  {_spread(found):<22} {bar}".rstrip())
    if result.note:
        lines.append(f"  ({result.note})")
    return "\n".join(lines)


def markdown(results: Sequence[Result]) -> str:
    """The table of the README: every figure that has a bar, then what it was compared with."""
    lines = ["| measured | bar | figure | spread | also |", "|---|--:|--:|--:|---|"]
    for result in results:
        others = "; ".join(f"{found.name} {_number(found)}" for found in result.figures if found.bar is None)
        barred = [found for found in result.figures if found.bar is not None]
        for index, found in enumerate(barred or result.figures[:1]):
            also = (others if barred else _rest(result)) if index == 0 else ""
            mark = " **missed**" if found.reached is False else ""
            cells = (f"{result.title}: {found.name}", found.bar or "", _number(found) + mark, _spread(found), also)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _rest(result: Result) -> str:
    return "; ".join(f"{found.name} {_number(found)}" for found in result.figures[1:])


def save(file: Path, machine: Machine, results: Sequence[Result]) -> None:
    """Write the results; those of questions not asked this time stay as they were."""
    kept: dict[str, Any] = json.loads(file.read_text())["results"] if file.exists() else {}
    kept |= {result.name: result.as_json() for result in results}
    file.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine.as_json(), "results": kept}
    file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def load(file: Path) -> list[Result]:
    """Read what `save` wrote."""
    return [Result.from_json(name, told) for name, told in json.loads(file.read_text())["results"].items()]


def _number(found: Figure) -> str:
    return f"{_plain(found.value)} {found.unit}".strip()


def _spread(found: Figure) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"{_plain(found.low)} to {_plain(found.high)}"


def _plain(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
