"""The parts of pages that are made from the source: `python -m tests.surface.generated` writes them anew.

Each stands between `<!-- made: name -->` and `<!-- end: name -->`; a test compares it with what would be written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.core import report, side_by_side
from chaos.sabotage import BUGS
from dibs.door import settings as door_settings
from dibs.model import duration, json_text, names, options, outcome
from dibs.model import settings as queue_settings
from dibs.model.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES
from dibs.model.status import TRANSITIONS
from dibs.store import enqueue, mysql, postgres, queues, reap, sqlite
from dibs.store.dialect import Can
from dibs.worker.options import Settings
from tests.surface.cli_reference import commands
from tests.surface.error_reference import errors
from tests.surface.rules import ARROWS
from tests.surface.source import ROOT, SOURCE

Table = Iterator[str]
_MARKED = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def rooms() -> Table:
    """Every folder and file of src/dibs with its sentence."""
    for folder in [SOURCE, *sorted(path for path in SOURCE.rglob("*") if _is_room(path))]:
        title = str(folder.relative_to(SOURCE.parent))
        front = folder / "__init__.py"
        yield from ("", f"### `{title}/`", "")
        if front.exists():
            yield from (_sentence(front), "")
        files = [path for path in sorted(folder.iterdir()) if path.suffix in (".py", ".sql") and path != front]
        if files:
            yield from ("| file | what lives there |", "|---|---|")
            yield from (f"| `{path.name}` | {_sentence(path)} |" for path in files)
    yield ""


def _is_room(path: Path) -> bool:
    files = path.iterdir() if path.is_dir() and path.name != "__pycache__" else ()
    return any(file.suffix in (".py", ".sql") for file in files)


def _sentence(path: Path) -> str:
    """The first paragraph of a module's docstring, or the first comment of an SQL file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        found = text.splitlines()[0].removeprefix("-- ")
    else:
        found = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    return " ".join(found.replace("|", "\\|").split())


def arrows() -> Table:
    """Which room may import which."""
    yield from ("", "| room | may import |", "|---|---|")
    for room, others in ARROWS.items():
        shown = "dibs/" if room == "__init__" else room
        names_of_others = ["the front (`dibs`)" if other == "__init__" else f"`{other}`" for other in others]
        yield f"| `{shown}` | {', '.join(names_of_others) or 'nothing'} |"
    yield ""


def statuses() -> Table:
    """From each status to those that may follow."""
    yield from ("", "| from | to |", "|---|---|")
    for status, following in TRANSITIONS.items():
        yield f"| `{status}` | {', '.join(f'`{other}`' for other in sorted(following)) or 'nothing'} |"
    yield ""


def capabilities() -> Table:
    """What each dialect says it can."""
    dialects = [postgres.dialect(), mysql.dialect(), mysql.dialect(kind=mysql.MariadbDatabase), sqlite.dialect()]
    yield from ("", f"| it can | {' | '.join(dialect.title for dialect in dialects)} |", "|---|:-:|:-:|:-:|:-:|")
    for capability in Can.__dataclass_fields__:
        answers = ["yes" if getattr(dialect.can, capability) else "no" for dialect in dialects]
        yield f"| {capability.replace('_', ' ')} | {' | '.join(answers)} |"
    yield ""


def limits() -> Table:
    """The figures of limits and defaults, as the source has them."""
    worker = Settings(None, {})
    yield from ("", "| what | figure | change it by |", "|---|---|---|")
    for what, figure, how in (
        ("payload, as JSON", f"{door_settings.DEFAULTS['payload_limit']:,} bytes", "`Dibs(payload_limit=...)`"),
        ("nesting of a payload", f"{json_text.DEPTH_LIMIT} levels", "–"),
        ("integers in a payload", f"±2^53 ({json_text.SAFE_INTEGER:,})", "pass them as text"),
        ("names of queues, tasks, tags, workers", "1 to 63 of `A-Z a-z 0-9 _ . -`", "–"),
        ("unique key", f"1 to {names.KEY_LIMIT} characters", "–"),
        ("priority", f"±{names.PRIORITY_LIMIT:,}", "–"),
        ("tags of a job", f"{options._TAG_LIMIT}", "–"),
        ("attempts", f"1 to 1,000; {DEFAULT_MAX_ATTEMPTS} by default", "`max_attempts`, of job, task or queue"),
        ("crashes before a job is dead", f"{DEFAULT_MAX_CRASHES}", "`max_crashes`, of task or queue"),
        ("time limit of an attempt", f"{queue_settings.DEFAULT_TIMEOUT:g} seconds", "`timeout`, of job, task or queue"),
        ("lease", f"{queue_settings.DEFAULT_LEASE:g} seconds, at least 1", "`lease`, of queue or worker"),
        ("a delay, a lease, any span", "0 seconds to 100 years", "–"),
        ("an instant", f"up to the year {duration.from_instant(duration._LATEST).year}", "–"),
        ("jobs of one statement in `enqueue_many`", f"{enqueue.BATCH:,}; larger lists are cut", "–"),
        ("jobs of one `dequeue`", "1,000", "–"),
        ("jobs of one claim of a worker", f"{worker.batch}, at most 5,000", "`batch`, of worker"),
        ("handlers at once", f"{worker.concurrency}, at most 10,000", "`concurrency`, of worker"),
        ('processes for `run_in="process"`', f"{worker.processes_limit}, at most 256", "`processes_limit`, of worker"),
        ("grace of a shutdown", f"{worker.grace:g} seconds", "`grace`, of worker"),
        ("error message kept", f"{outcome.MESSAGE_LIMIT:,} characters", "–"),
        ("traceback kept", f"the last {outcome.TRACEBACK_LIMIT:,} characters", "–"),
        ("jobs of a page of `list`", "500", "`cursor`"),
        ("rows a count of `stats` reads", f"{queues.COUNT_CAP:,} a lane; then it says that it stopped", "`count`"),
        ("index entries the reaper reads at once", f"{reap.STRETCH:,} a lane", "–"),
    ):
        yield f"| {what} | {figure} | {how} |"
    yield ""


def sabotages() -> Table:
    """The bugs that chaos puts into dibs, and who must see them."""
    yield from ("", "| `--sabotage` | what is wrong | scenario | what must break |", "|---|---|---|---|")
    for name, bug in BUGS.items():
        yield f"| `{name}` | {bug.what} | {bug.scenario} | {' or '.join(bug.invariants)} |"
    yield ""


RESULTS = ROOT / "bench/results"
MEASURED = RESULTS / "postgres18.json"


def measured() -> Table:
    """The figures for the README."""
    yield from ("", f"{report.where(MEASURED)}:", "", report.summary(report.load(MEASURED)), "")


def figures() -> Table:
    """All figures of all servers that there are results of."""
    for name in side_by_side.FILES:
        file = RESULTS / f"{name}.json"
        if file.exists():
            yield from ("", f"On {report.where(file)}:", "", report.markdown(report.load(file)), "")


def databases_measured() -> Table:
    """The databases side by side, for the README."""
    yield from ("", side_by_side.table(RESULTS), "")


MADE: dict[str, Callable[[], Table]] = {
    "rooms": rooms,
    "arrows": arrows,
    "statuses": statuses,
    "capabilities": capabilities,
    "limits": limits,
    "commands": commands,
    "errors": errors,
    "sabotages": sabotages,
    "measured": measured,
    "figures": figures,
    "side_by_side": databases_measured,
}


def renewed(text: str) -> str:
    """A page with all its made parts as they should be."""
    return _MARKED.sub(lambda found: found[1] + "\n".join(MADE[found[2]]()) + "\n" + found[3], text)


def made_parts(text: str) -> list[str]:
    """The names of the made parts of a page."""
    return [found[2] for found in _MARKED.finditer(text)]


def main() -> None:
    """Write every page anew whose made parts have changed."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        if renewed(text) != text:
            path.write_text(renewed(text), encoding="utf-8")
            print(f"renewed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
