"""SQL as named, commented blocks in files, and a statement as an operation yields it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias

from dibs.model.json_text import decode

Style = Literal["pyformat", "format", "qmark", "named", "numeric_dollar"]
Rows: TypeAlias = list[tuple[Any, ...]]

_HEADER = re.compile(r"^-- name: (\w+)(?: plan: (\w+))?$", re.MULTILINE)
_THEN = re.compile(r"^-- then:.*$", re.MULTILINE)
_ELSE = re.compile(r"^-- else:.*$", re.MULTILINE)
_EACH = re.compile(r"^-- each: (\w+) \(([\w, ]+)\)$", re.MULTILINE)
_HOP = re.compile(r"^-- hop: (\{.*\})$", re.MULTILINE)
_LET = re.compile(r"^-- let (\w+)\(x\): (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"'(?:[^']|'')*'|(?<![:\w]):([a-z_][a-z0-9_]*)")
FAMILY = {"mariadb": "mysql"}
"""A dialect that is another one but for its own file of statements, if it has one."""
MOST_BRANCHES = 100
"""Rows that one statement is repeated for at most."""


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
    """A bulk load: rows as text, in the form that the dialect says (`bulk.py`)."""

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
    its first column; if nothing was found, they are not sent. What stands after a line `-- else:` is sent if all
    before it found nothing.
    """

    def __init__(self, name: str, text: str, fresh: bool = False) -> None:
        self.name = name
        self.text = text
        self.fresh = fresh
        self._ways = tuple(tuple(Part(part.strip(), fresh) for part in _THEN.split(way)) for way in _ELSE.split(text))
        self.parts = tuple(part for way in self._ways for part in way)
        self.parameters = frozenset[str]().union(*(part.parameters for part in self.parts)) - {"found"}
        self.plain = len(self.parts) == 1
        """Whether its one text is all that is sent."""

    def sent(
        self, params: dict[str, Any], array: Callable[[Sequence[Any]], Any]
    ) -> Generator[tuple[Part, dict[str, Any]], Rows, Rows]:
        """Yields each part to be sent, is sent its rows, returns the answer."""
        found: Rows = []
        for way in self._ways:
            found = yield from self._gone(way, params, array)
            if found:
                break
        return found

    @staticmethod
    def _gone(
        way: Sequence[Part], params: dict[str, Any], array: Callable[[Sequence[Any]], Any]
    ) -> Generator[tuple[Part, dict[str, Any]], Rows, Rows]:
        answer: Rows | None = None
        for part in way:
            if answer is not None:
                if not answer:
                    break
                params = {**params, "found": array([row[0] for row in answer])}
            rows = yield part, params
            if part.answers and answer is None:
                answer = rows
        return answer or []


class EachBlock(Block):
    """A statement that is repeated for each row of a table of values, and sent once: a line `-- each: table (columns)`.

    For databases that search an index for the values they find in the text, but not for those of another table.
    """

    def __init__(self, name: str, text: str, table: str, columns: Sequence[str]) -> None:
        super().__init__(name, text)
        self.parameters = (self.parameters - set(columns)) | {table}
        self.plain = False
        self._table = table
        self._columns = columns
        self._repeated: dict[int, Part] = {}

    def sent(
        self,
        params: dict[str, Any],
        array: Callable[[Sequence[Any]], Any],  # noqa: ARG002
    ) -> Generator[tuple[Part, dict[str, Any]], Rows, Rows]:
        """Yields the statement for as many rows as it may hold, is sent what it answers, returns it all."""
        rows: Rows = decode(params[self._table])
        answer: Rows = []
        for start in range(0, len(rows), MOST_BRANCHES):
            chosen = rows[start : start + MOST_BRANCHES]
            values = {
                f"{column}_{number}": value
                for number, row in enumerate(chosen)
                for column, value in zip(self._columns, row, strict=True)
            }
            answer += yield self._part(len(chosen)), {**params, **values}
        return answer

    def _part(self, count: int) -> Part:
        if count not in self._repeated:
            branches = (_PARAMETER.sub(partial(self._numbered, number), self.text) for number in range(count))
            self._repeated[count] = Part("\nunion all\n".join(branches))
        return self._repeated[count]

    def _numbered(self, number: int, found: re.Match[str]) -> str:
        return f"{found[0]}_{number}" if found[1] in self._columns else found[0]


class HopBlock(Block):
    """A statement that finds one row, and is sent again from there until it finds none: a line `-- hop: {start}`.

    For databases that cannot search an index from what they have just found there.
    """

    def __init__(self, name: str, text: str, start: dict[str, Any]) -> None:
        super().__init__(name, text)
        self.parameters = self.parameters - set(start)
        self.plain = False
        self._start = start

    def sent(
        self,
        params: dict[str, Any],
        array: Callable[[Sequence[Any]], Any],  # noqa: ARG002
    ) -> Generator[tuple[Part, dict[str, Any]], Rows, Rows]:
        """Yields the statement from each place, is sent what it finds there, returns all that was found."""
        place = self._start
        answer: Rows = []
        while True:
            rows = yield self.parts[0], {**params, **place}
            if not rows:
                return answer
            answer += rows
            place = dict(zip(self._start, rows[-1], strict=True))


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
    names = (FAMILY[dialect], dialect) if dialect in FAMILY else (dialect,)
    found = [files("dibs.store").joinpath(f"sql/{name}.sql") for name in names]
    source = "\n".join(file.read_text(encoding="utf-8") for file in found if file.is_file())
    return {name: _block(name, text, fresh) for name, fresh, text in _blocks(source, now)}


def _block(name: str, text: str, fresh: bool) -> Block:
    each, hop = _EACH.search(text), _HOP.search(text)
    if each:
        return EachBlock(name, _EACH.sub("", text).strip(), each[1], each[2].split(", "))
    if hop:
        return HopBlock(name, _HOP.sub("", text).strip(), decode(hop[1]))
    return Block(name, text, fresh)


def _blocks(source: str, now: str | None) -> Iterator[tuple[str, bool, str]]:
    words = [(re.compile(rf"\b{name}\(([^()]*)\)"), body) for name, body in _LET.findall(source)]
    headers = list(_HEADER.finditer(source))
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        body = source[header.end() : following.start() if following else len(source)]
        lines = [line for line in body.splitlines() if line.strip() and (line[:2] != "--" or _says_how(line))]
        text = "\n".join(lines)
        for word, meaning in words:
            text = word.sub(partial(_meant, meaning), text)
        if now is not None:
            text = re.sub(r":now\b", now, text)
        yield header.group(1), header.group(2) == "fresh", text


def _meant(meaning: str, found: re.Match[str]) -> str:
    return re.sub(r"\bx\b", found[1], meaning)


def _says_how(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_THEN, _ELSE, _EACH, _HOP))
