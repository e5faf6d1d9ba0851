"""SQL as named, commented blocks in files, and a statement as an operation yields it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias

Style = Literal["pyformat", "format", "qmark", "named", "numeric_dollar"]
Rows: TypeAlias = list[tuple[Any, ...]]

_HEADER = re.compile(r"^-- name: (\w+)(?: plan: (\w+))?$", re.MULTILINE)
_THEN = re.compile(r"^-- then:.*$", re.MULTILINE)
_PARAMETER = re.compile(r"'(?:[^']|'')*'|(?<![:\w]):([a-z_]+)")


class Statement(NamedTuple):
    """One request of an operation: a block's name and its parameters. The session knows the SQL."""

    name: str
    params: dict[str, Any]


def sql(name: str, /, **params: Any) -> Statement:
    """What an operation yields: `rows = yield sql("claim", queue=..., limit=10)`."""
    return Statement(name, params)


ATOMIC = Statement("atomic", {})
"""Yielded first by an operation of several statements: they take effect together or not at all."""


class Copy(NamedTuple):
    """A bulk load: text in PostgreSQL's COPY format for the drivers that can, rows for the others."""

    name: str
    chunks: Iterable[str]
    columns: tuple[str, ...]


class Part:
    """One SQL text, compiled once for each parameter style in use."""

    def __init__(self, text: str, fresh: bool = False) -> None:
        self.text = text
        self.fresh = fresh
        self.answers = text.startswith(("select", "with", "pragma")) or "returning" in text
        self.parameters = frozenset(found for found in _names(text) if found)
        self._compiled: dict[Style, tuple[str, tuple[str, ...]]] = {}

    def compiled(self, style: Style) -> tuple[str, tuple[str, ...]]:
        """The text in a driver's style, and the names of its parameters in the order it wants them."""
        if style not in self._compiled:
            self._compiled[style] = _compile(self.text, style)
        return self._compiled[style]


class Block:
    """A named statement. Where a database cannot do it in one SQL text it has several parts, after lines `-- then:`.

    The answer is what the first part answers that answers anything. Parts after it may call it `:found`, an array of
    its first column; if nothing was found, they are not sent.
    """

    def __init__(self, name: str, text: str, fresh: bool = False) -> None:
        self.name = name
        self.text = text
        self.fresh = fresh
        self.parts = tuple(Part(part.strip(), fresh) for part in _THEN.split(text))
        self.parameters = frozenset[str]().union(*(part.parameters for part in self.parts)) - {"found"}

    def sent(
        self, params: dict[str, Any], array: Callable[[Sequence[Any]], Any]
    ) -> Generator[tuple[Part, dict[str, Any]], Rows, Rows]:
        """Yields each part to be sent, is sent its rows, returns the answer."""
        answer: Rows | None = None
        for part in self.parts:
            if answer is not None:
                if not answer:
                    break
                params = {**params, "found": array([row[0] for row in answer])}
            rows = yield part, params
            if part.answers and answer is None:
                answer = rows
        return answer or []


def _names(text: str) -> Iterator[str]:
    return (match.group(1) for match in _PARAMETER.finditer(text))


def _compile(text: str, style: Style) -> tuple[str, tuple[str, ...]]:
    """Rewrite `:name` for a driver. A percent sign is doubled where the driver formats with percent signs."""
    order: list[str] = []
    if style in ("pyformat", "format"):
        text = text.replace("%", "%%")

    def rewrite(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)
        if style == "named":
            return f":{name}"
        if style == "pyformat":
            return f"%({name})s"
        if style == "numeric_dollar":
            if name not in order:
                order.append(name)
            return f"${order.index(name) + 1}"
        order.append(name)
        return "%s" if style == "format" else "?"

    return _PARAMETER.sub(rewrite, text), tuple(order)


@cache
def load(dialect: str, now: str | None) -> dict[str, Block]:
    """Read the blocks of a dialect. `now` is its SQL for the database's clock; None leaves :now a parameter."""
    source = files("dibs.store").joinpath(f"sql/{dialect}.sql").read_text(encoding="utf-8")
    return {name: Block(name, text, fresh) for name, fresh, text in _blocks(source, now)}


def _blocks(source: str, now: str | None) -> Iterator[tuple[str, bool, str]]:
    headers = list(_HEADER.finditer(source))
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        body = source[header.end() : following.start() if following else len(source)]
        lines = [line for line in body.splitlines() if line.strip() and (line[:2] != "--" or _THEN.match(line))]
        text = "\n".join(lines)
        if now is not None:
            text = re.sub(r":now\b", now, text)
        yield header.group(1), header.group(2) == "fresh", text
