"""Tables on a terminal: every row on one line, what matters least left out where there is no room."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from dibs.cli.output import coloured, console, safe
from dibs.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType

ALWAYS = 100
"""The weight of a column that is never left out."""
_GAP = 2
_SHORTEST = 16
_NOTHING = ("", "-")
_COLOURS = {
    "completed": "green",
    "running": "cyan",
    "claimed": "cyan",
    "ready": "blue",
    "retrying": "yellow",
    "scheduled": "blue",
    "blocked": "magenta",
    "dead": "red",
    "cancelled": "bright_black",
    "discarded": "bright_black",
    "stopping": "yellow",
    "lost": "red",
}


class Column(NamedTuple):
    """A column: on a narrow screen those of the smallest weight go first. One that may be `cut` ends in an ellipsis."""

    title: str
    weight: int = ALWAYS
    right: bool = False
    cut: bool = False


class Word(str):
    """A cell with a colour of its own."""

    colour = ""


def state(name: str) -> Word:
    """The state of a job or worker, in the user's language and in its colour."""
    word = Word(say(f"status.{name}"))
    word.colour = _COLOURS[name]
    return word


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Rows under titles, on standard output."""
    _print(grid(columns, rows))


def grid(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> RenderableType:
    """The table itself, for those who draw it again and again. Into a pipe every column goes, whole."""
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(value) for value in row] for row in rows]
    widths = dict.fromkeys(range(len(columns)), 0)
    if sys.stdout.isatty():
        widths = fitting(columns, cells, console(sys.stdout).width)
    made = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for place, width in widths.items():
        column = columns[place]
        made.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=width or None,
        )
    for row in cells:
        made.add_row(*(Text(row[place], style=getattr(row[place], "colour", "")) for place in widths))
    return made


def fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> dict[int, int]:
    """The places of the columns that are shown, each with its width: none that is empty, none that finds no room."""
    from rich.cells import cell_len

    widths = {
        place: max([cell_len(column.title), *(cell_len(row[place]) for row in rows)])
        for place, column in enumerate(columns)
        if not rows or any(row[place] not in _NOTHING for row in rows)
    }

    def missing(most: int) -> int:
        taken = sum(min(width, most) if columns[place].cut else width for place, width in widths.items())
        return taken + _GAP * (len(widths) - 1) - room

    for place in sorted(widths, key=lambda place: columns[place].weight):
        if missing(_SHORTEST) > 0 and columns[place].weight < ALWAYS:
            del widths[place]
    for place in widths:
        if columns[place].cut:
            widths[place] = max(_SHORTEST, widths[place] - max(0, missing(sys.maxsize)))
    return widths


def pairs(values: Mapping[str, object]) -> None:
    """Names and values, one on each line."""
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in values.items():
        cell = _cell(value)
        made.add_row(Text(name, style="bold"), Text(cell, style=getattr(cell, "colour", "")))
    _print(made)


def _cell(value: object) -> str:
    return value if isinstance(value, Word) else safe(value)


def _print(what: RenderableType) -> None:
    """Print on standard output; into a pipe without the blanks that fill a column."""
    if sys.stdout.isatty():
        console(sys.stdout).print(what)
        return
    paper = console(sys.stdout)
    with paper.capture() as caught:
        paper.print(what)
    click.echo("\n".join(_lines(caught.get())), color=coloured(sys.stdout))


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() for line in text.splitlines())
