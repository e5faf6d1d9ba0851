"""The house has one direction: who may import whom, and what each kind of room may touch."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.surface.rules import ARROWS
from tests.surface.source import Module, modules

RULE = "errors <- model <- task, store <- door, worker <- cli: imports go one way (docs/architecture.md)"

PERMITTED = {
    # A program that only enqueues carries no worker, so the door opens it when it is asked for one.
    ("door/dibs.py", "dibs.worker"),
    ("door/dibs.py", "dibs.worker.options"),
}
"""The imports against the arrows, each with its reason."""

HIDDEN = {
    ("door/dibs.py", "dibs.worker"): "a program that only enqueues carries no worker",
    ("store/postgres.py", "psycopg"): "a driver; its absence gets a message that names the extra",
    ("store/mysql.py", "pymysql"): "a driver; its absence gets a message that names the extra",
    ("store/sessions/psycopg.py", "psycopg"): "a driver; who gives a connection of it has loaded it",
    ("worker/loop_runner.py", "uvloop"): "an extra, used where it is installed",
    ("cli/__init__.py", "dibs.cli.run"): "a caught import error becomes an exit code",
    ("__init__.py", "importlib"): "the only work of the lazy front",
}
"""The imports inside functions that are known, with their reasons."""

OPERATIONS = frozenset({"enqueue", "claim", "settle", "reap", "jobs", "queues", "roll"})
DRIVERS = frozenset(
    {
        "psycopg",
        "psycopg2",
        "asyncpg",
        "sqlalchemy",
        "sqlite3",
        "aiosqlite",
        "pymysql",
        "MySQLdb",
        "asyncmy",
        "aiomysql",
    }
)
WAITING = frozenset({"asyncio", "threading", "time", "multiprocessing", "concurrent", "socket", "random"})
NEEDS_CLOCK = {
    "model/identity.py": "ids begin with the milliseconds at which they are made",
    "model/backoff.py": "jitter; the dice can be given as an argument",
}
NAMES_OF_DATABASES = frozenset({"postgres", "postgresql", "sqlite", "mysql", "mariadb"})
MAY_NAME_DATABASES = frozenset(
    {"store/access.py", "store/postgres.py", "store/sqlite.py", "store/mysql.py", "store/sessions/recognise.py"}
)


def _room_of(target: str) -> str | None:
    parts = target.split(".")
    if parts[0] != "dibs":
        return None
    return parts[1] if len(parts) > 1 else "__init__"


def _against_the_arrows(module: Module) -> Iterator[str]:
    allowed = {module.room, *ARROWS[module.room]}
    for found in module.imports():
        room = _room_of(found.target)
        if room is not None and room not in allowed and (module.place, found.target) not in PERMITTED:
            yield f"{module.shown}:{found.line} imports {found.target}; {module.room} may import {ARROWS[module.room]}"


def _top(target: str) -> str:
    return target.partition(".")[0]


def test_every_room_is_known_to_the_rule_of_imports() -> None:
    unknown = {module.room for module in modules()} - ARROWS.keys()
    assert not unknown, f"{unknown} have no place in: {RULE}. Decide what they may import, here and in the document."


def test_imports_between_rooms_go_one_way_only() -> None:
    wrong = [line for module in modules() for line in _against_the_arrows(module)]
    assert not wrong, f"{RULE}\n" + "\n".join(wrong)


def test_no_two_modules_import_each_other() -> None:
    imports = {module.name: _imported_at_start(module) for module in modules()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"a circle of imports: {' -> '.join([*path[path.index(name) :], name])}"
        if name not in done:
            for target in sorted(imports.get(name, ())):
                visit(target, (*path, name))
            done.add(name)

    for name in sorted(imports):
        visit(name, ())


def _imported_at_start(module: Module) -> set[str]:
    at_start = {found.target for found in module.imports() if not found.in_function and not found.for_types}
    return {target for target in at_start if target.startswith("dibs.")} - {module.name}


def test_no_import_hides_in_a_function_without_a_known_reason() -> None:
    hidden = {
        (module.place, found.target): f"{module.shown}:{found.line} imports {found.target} inside a function"
        for module in modules()
        for found in module.imports()
        if found.in_function
    }
    unexplained = [hidden[key] for key in hidden.keys() - HIDDEN.keys() if not key[0].startswith("cli/")]
    assert not unexplained, "imports stand at the top, drivers apart:\n" + "\n".join(unexplained)
    stale = HIDDEN.keys() - hidden.keys()
    assert not stale, f"these are not imported inside a function any more: {stale}"


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_operation_knows_no_driver_no_thread_and_no_clock(name: str) -> None:
    [module] = [module for module in modules() if module.place == f"store/{name}.py"]
    wrong = [found for found in module.imports() if _top(found.target) in DRIVERS | WAITING]
    assert not wrong, (
        "operations are generators of statements; they import no driver, asyncio, threading or time "
        f"(docs/decisions/0001-operations-are-generators.md): {module.shown} imports {wrong}"
    )


def test_an_operation_imports_only_words_and_what_it_is_written_in() -> None:
    allowed = {f"dibs.store.{name}" for name in (*OPERATIONS, "statement", "bulk", "dialect", "runner")}
    wrong = [
        f"{module.shown}:{found.line} imports {found.target}"
        for module in modules()
        if module.room == "store" and module.path.stem in OPERATIONS
        for found in module.imports()
        if found.target.startswith("dibs.store") and found.target not in allowed
    ]
    assert not wrong, "an operation knows statements, the dialect's type and other operations:\n" + "\n".join(wrong)


def test_words_take_time_and_chance_as_arguments() -> None:
    wrong = [
        f"{module.shown}:{found.line} imports {found.target}"
        for module in modules()
        if module.room == "model" and module.place not in NEEDS_CLOCK
        for found in module.imports()
        if _top(found.target) in WAITING | DRIVERS
    ]
    assert not wrong, "model/ decides; time and randomness are its arguments:\n" + "\n".join(wrong)


def test_only_the_store_touches_a_database_driver() -> None:
    wrong = [
        f"{module.shown}:{found.line} imports {found.target}"
        for module in modules()
        if module.room != "store" or module.path.stem in OPERATIONS
        for found in module.imports()
        if _top(found.target) in DRIVERS
    ]
    assert not wrong, "drivers live in store/ dialects, migrators and sessions only:\n" + "\n".join(wrong)


def test_the_library_needs_nothing_but_msgspec() -> None:
    foreign = {
        (module.room, _top(found.target))
        for module in modules()
        if module.room != "cli"
        for found in module.imports()
        if not found.in_function and not found.for_types and _is_foreign(found.target)
    }
    assert {name for _, name in foreign} == {"msgspec"}, f"the library imports {foreign}; click and rich are the CLI's"


def _is_foreign(target: str) -> bool:
    return _top(target) not in sys.stdlib_module_names | {"dibs", "__future__"}


def test_nobody_asks_which_database_it_is_but_those_that_find_it() -> None:
    wrong = [
        f"{module.shown}:{node.lineno} compares with {database!r}"
        for module in modules()
        if module.place not in MAY_NAME_DATABASES
        for node, database in _comparisons(module)
    ]
    assert not wrong, "a dialect says what it can (Can), nobody asks what it is:\n" + "\n".join(wrong)


def _comparisons(module: Module) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                for part in ast.walk(side):
                    if isinstance(part, ast.Constant) and part.value in NAMES_OF_DATABASES:
                        yield node, str(part.value)
