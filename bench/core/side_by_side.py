"""The databases side by side: the same measures from several result files, one column for each database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.core import report
from bench.core.result import Figure, Result

Results = Mapping[str, Result]
FILES = ("postgres18", "mysql97", "mariadb1011")
"""In `bench/results`. What was measured on SQLite stands in the first."""
LEGEND = (
    "In brackets what the reference beside it says. Of a rate: dibs by the reference. Of a time, and of what an old "
    "snapshot or a long queue leaves of a rate: the reference's own. – was not measured."
)


class Measure(NamedTuple):
    """One line of the table: where its figures stand, on a server and on SQLite."""

    title: str
    question: str
    dibs: str
    reference: str
    sqlite: str = ""


MEASURES = (
    Measure("drain, one worker process", "drain_async_1", "dibs", "ratio to the reference", "sqlite_drain"),
    Measure("drain, two worker processes", "drain_async_2", "dibs", "ratio to the reference"),
    Measure("enqueue, one by one", "enqueue_single", "dibs", "ratio to the reference"),
    Measure("enqueue, ten threads", "enqueue_ten", "dibs", "ratio to the reference"),
    Measure("enqueue in bulk", "enqueue_bulk", "dibs", "ratio to the reference"),
    Measure("an idle worker picks up, p50", "pickup", "dibs, p50", "reference (*), p50", "pickup_sqlite"),
    Measure("an idle worker picks up, p99", "pickup", "dibs, p99", "reference (*), p99", "pickup_sqlite"),
    Measure("what an old snapshot leaves", "pinned", "pinned by unpinned", "the reference, pinned by unpinned"),
    Measure("what a million waiting leave", "backlog_million", "rate by that with 50,000 waiting", "the reference's"),
)


def table(folder: Path) -> str:
    """A Markdown table of the result files that exist."""
    files = [file for name in FILES if (file := folder / f"{name}.json").exists()]
    servers = [column for file in files for column in _server(file)]
    columns = dict([*servers, *(column for file in files for column in _sqlite(file))])
    lines = [["measured", *columns], ["---", *["--:"] * len(columns)]]
    lines += [[measure.title, *[_cell(measure, found) for found in columns.values()]] for measure in MEASURES]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", LEGEND])


def _server(file: Path) -> Iterator[tuple[str, Results]]:
    """The server's title and results, if a file has any."""
    results = {result.name: result for result in report.load(file)}
    titles = [title for result in results.values() if (title := result.about["server"]) != "none"]
    for title in titles[:1]:
        yield title, results


def _sqlite(file: Path) -> Iterator[tuple[str, Results]]:
    """The same of SQLite, under the names that the results have on a server."""
    results = {result.name: result for result in report.load(file)}
    local = {measure.question: results[measure.sqlite] for measure in MEASURES if measure.sqlite in results}
    if local:
        version = json.loads(file.read_text())["machine"]["sqlite"]
        yield f"SQLite {version.rpartition('.')[0]}", local


def _cell(measure: Measure, results: Results) -> str:
    figures: Sequence[Figure] = results[measure.question].figures if measure.question in results else ()
    dibs, reference = _named(figures, measure.dibs), _named(figures, measure.reference)
    if dibs is None:
        return "–"
    return report.number(dibs) + (f" ({report.number(reference)})" if reference else "")


def _named(figures: Sequence[Figure], name: str) -> Figure | None:
    """By its name, in which a star stands for anything."""
    first, _, last = name.partition("*")
    fits = [figure for figure in figures if figure.name.startswith(first) and figure.name.endswith(last)]
    return next((figure for figure in fits if "*" in name or figure.name == name), None)
