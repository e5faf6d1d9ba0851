"""What a database can do, and how its errors read. Operations ask what it can, never which it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dibs.errors import DibsError
from dibs.model.json_text import write
from dibs.store.bulk import Form
from dibs.store.statement import Block, load

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Can:
    """The capabilities that change the number of steps. Printed as a table in docs/databases.md."""

    load_in_bulk: bool
    ring_sleepers: bool
    make_its_own_tables: bool


@dataclass(slots=True)
class Dialect:
    """The SQL of one database and the way values are written for it."""

    name: str
    title: str
    can: Can
    now: str | None
    array: Callable[[Sequence[Any]], str]
    columns: Callable[..., dict[str, Any]]
    explain: Callable[[BaseException], DibsError | None]
    replayable: Callable[[BaseException], bool]
    """Whether a transaction that met this error may be played again at once."""
    refuses: Callable[[BaseException], bool]
    """Whether the data itself is refused: what is sent again is refused again. All other trouble passes."""
    begin: str
    """The SQL that begins a transaction.

    Where there is one writer at a time, its place is taken at once: a reading transaction that writes later could
    only fail. Elsewhere each statement must see what has been committed, whatever the connection's default.
    """
    form: Form | None = None
    """How the rows of a bulk load are written, where there is one."""
    clock: Clock | None = None
    blocks: dict[str, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.blocks = load(self.name, self.now)

    def bind(self, block: Block, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a statement, with the time where the database does not tell it itself."""
        if self.clock is not None and "now" in block.parameters:
            return {**params, "now": self.clock()}
        return params


class Bell(Protocol):
    """Hears that somebody rang. Only ever makes polling earlier."""

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most so long."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


def json_array(values: Sequence[Any]) -> str:
    """A list as a JSON array: how a batch travels to databases without arrays."""
    return write(list(values)).decode()


def json_columns(name: str, **columns: Sequence[Any]) -> dict[str, Any]:
    """A table of values as one JSON parameter, `name`: an array of rows."""
    return {name: write(list(zip(*columns.values(), strict=True))).decode()}


def pg_columns(_name: str, **columns: Sequence[Any]) -> dict[str, Any]:
    """A table of values as PostgreSQL takes it: an array for each column."""
    return {column: pg_array(values) for column, values in columns.items()}


_BARE = re.compile(r"[0-9A-Za-z_-]+(?:,[0-9A-Za-z_-]+)*")


def pg_array(values: Sequence[Any]) -> str:
    """A list as PostgreSQL's array literal: one text, whatever the driver makes of lists.

    >>> print(pg_array([1, None, 'a"b']), pg_array(["x", "y"]))
    {1,NULL,"a\\"b"} {x,y}
    """
    first = values[0] if values else None
    if first is None and values.count(None) == len(values):
        return "{" + ",".join(["NULL"] * len(values)) + "}"
    if type(first) is int and None not in values:
        return "{" + ",".join(map(str, values)) + "}"
    if type(first) is str and None not in values:
        text = ",".join(values)
        if _BARE.fullmatch(text) and text.count(",") == len(values) - 1 and "null" not in text.lower():
            return "{" + text + "}"
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
