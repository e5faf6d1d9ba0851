"""Budgets of the house: a number that makes the code worse is changed here, with a decision record, never silently."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import dibs
from tests.surface.source import ROOT, Function, Module, code_lines, modules, modules_of_tests, parameters

LINES_OF_A_FUNCTION = 40
MEDIAN_OF_FUNCTIONS = 8
LINES_OF_A_FILE = 400
MEDIAN_OF_FILES = 150
PARAMETERS = 8
PUBLIC_NAMES = 20
CATCH_ALLS = 5
WORDS_OF_A_TEST = 5
SAME_LINES = 6
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "tools", "base_utils"})
CATCHING_ALL = frozenset({"Exception", "BaseException"})
WAITING_IS_THEIR_WORK = frozenset({"tests/servers"})
"""The harness that starts real servers waits for processes that send no signal."""


def _told(found: list[str], rule: str) -> str:
    return f"{rule}:\n" + "\n".join(found)


def _functions() -> Iterator[tuple[Module, Function]]:
    for module in modules():
        for function in module.functions():
            yield module, function


def _where(module: Module, node: ast.AST) -> str:
    return f"{module.shown}:{getattr(node, 'lineno', 1)}"


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{_where(module, function)} {function.name}: {code_lines(function)} lines"
        for module, function in _functions()
        if code_lines(function) > LINES_OF_A_FUNCTION
    ]
    assert not long, _told(long, f"a function has at most {LINES_OF_A_FUNCTION} lines without its docstring")


def test_half_of_all_functions_are_very_short() -> None:
    assert statistics.median(code_lines(function) for _, function in _functions()) <= MEDIAN_OF_FUNCTIONS


def test_no_file_is_longer_than_can_be_read_at_once() -> None:
    files = [*modules(), *modules_of_tests(), *(Module(path) for path in _other_files())]
    long = [f"{file.shown}: {_lines(file)} lines" for file in files if _lines(file) > LINES_OF_A_FILE]
    assert not long, _told(long, f"a file has at most {LINES_OF_A_FILE} lines")


def test_half_of_all_files_are_short() -> None:
    assert statistics.median(map(_lines, modules())) <= MEDIAN_OF_FILES


def _lines(module: Module) -> int:
    return len(module.text.splitlines())


def _other_files() -> Iterator[Path]:
    for folder in ("bench", "chaos", "examples"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_no_function_takes_more_than_eight_parameters() -> None:
    many = [
        f"{_where(module, function)} {function.name}: {len(parameters(function))} parameters"
        for module, function in _functions()
        if len(parameters(function)) > PARAMETERS
    ]
    assert not many, _told(many, f"a function takes at most {PARAMETERS} parameters; options travel as one value")


def test_the_package_exports_few_names_and_nothing_by_accident() -> None:
    assert len(dibs.__all__) <= PUBLIC_NAMES
    assert sorted(dibs.__all__) == list(dibs.__all__), "kept in alphabetical order"
    assert all(hasattr(dibs, name) for name in dibs.__all__)


def test_every_parameter_and_every_answer_is_annotated() -> None:
    bare = [
        f"{_where(module, function)} {function.name}: {missing}"
        for module, function in _functions()
        for missing in _unannotated(function)
    ]
    assert not bare, _told(bare, "everything is annotated")


def _unannotated(function: Function) -> Iterator[str]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    for arg in every:
        if arg is not None and arg.annotation is None and arg.arg not in ("self", "cls"):
            yield arg.arg
    if function.returns is None:
        yield "the answer"


def test_no_type_error_is_silenced_in_the_source() -> None:
    silenced = _matching(modules(), r"#\s*(type|pyright):\s*ignore")
    assert not silenced, _told(silenced, "no `type: ignore` in src: the type is wrong, or the code is")


def test_nothing_is_left_for_later_in_a_comment() -> None:
    files = [*modules(), *modules_of_tests(), *(Module(path) for path in _other_files())]
    mark = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X"))
    later = _matching(files, rf"\b({mark})\b")
    assert not later, _told(later, "an issue, or a line in the documents, instead of a mark in a comment")


def _matching(files: Iterator[Module] | tuple[Module, ...] | list[Module], pattern: str) -> list[str]:
    return [
        f"{file.shown}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.text.splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_few_places_swallow_every_exception_and_each_says_why() -> None:
    found = [(module, handler) for module in modules() for handler in _swallowing(module)]
    shown = [f"{_where(module, handler)}: {_line(module, handler)}" for module, handler in found]
    assert len(found) <= CATCH_ALLS, _told(shown, f"at most {CATCH_ALLS} places may catch whatever comes")
    silent = [line for line in shown if not re.search(r"# noqa: BLE001 (- )?\w+", line)]
    assert not silent, _told(silent, "a place that catches whatever comes says why on the same line")


def test_no_exception_is_passed_over_in_silence() -> None:
    silent = [
        f"{_where(module, node)}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and all(isinstance(step, ast.Pass) for step in node.body)
    ]
    assert not silent, _told(silent, "an except block does something")


def _swallowing(module: Module) -> Iterator[ast.ExceptHandler]:
    """Handlers of everything that do not end by raising."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {
                part.id for part in ast.walk(node.type or ast.Name("BaseException")) if isinstance(part, ast.Name)
            }
            if caught & CATCHING_ALL and not _raises(node.body):
                yield node


def _raises(body: list[ast.stmt]) -> bool:
    """Whether a raise stands in the block, or a call of a method that is named for it."""
    parts = [part for step in body for part in ast.walk(step)]
    calls = [ast.unparse(part.func).rpartition(".")[2] for part in parts if isinstance(part, ast.Call)]
    return any(isinstance(part, ast.Raise) for part in parts) or "_raise" in calls


def _line(module: Module, node: ast.ExceptHandler) -> str:
    return module.text.splitlines()[node.lineno - 1].strip()


def test_tests_wait_for_signals_and_never_for_time_to_pass() -> None:
    files = [file for file in modules_of_tests() if not file.shown.startswith(tuple(WAITING_IS_THEIR_WORK))]
    calls = [
        f"{_where(file, node)}: {ast.unparse(node)}"
        for file in files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep"
        if ast.unparse(node) != "asyncio.sleep(0)"  # a turn for the others on the loop, however long it takes
    ]
    assert not calls, _told(calls, "no sleep( in tests outside chaos/: use an event, a fake clock or wait_until")


def test_the_name_of_every_test_is_a_sentence() -> None:
    short = [
        f"{_where(file, function)} {function.name}"
        for file in modules_of_tests()
        if file.path.name.startswith("test_")
        for function in file.functions()
        if function.name.startswith("test_") and len(function.name.split("_")) < WORDS_OF_A_TEST
    ]
    assert not short, _told(short, f"the name of a test has at least {WORDS_OF_A_TEST} words, `test` being one")


def test_no_module_is_named_after_nothing_in_particular() -> None:
    files = [*modules(), *modules_of_tests(), *(Module(path) for path in _other_files())]
    vague = [file.shown for file in files if VAGUE_NAMES & {*file.path.relative_to(ROOT).with_suffix("").parts}]
    assert not vague, _told(vague, "a module is named after what lives in it")


def test_no_six_lines_of_a_function_stand_in_another_one_too() -> None:
    places: dict[tuple[str, ...], list[str]] = {}
    for module, function in _functions():
        lines = _body(module, function)
        for start in range(len(lines) - SAME_LINES + 1):
            window = lines[start : start + SAME_LINES]
            places.setdefault(tuple(text for _, text in window), []).append(f"{module.shown}:{window[0][0]}")
    twice = [" and ".join(found) for found in places.values() if len(set(found)) > 1]
    assert not twice, _told(twice, f"the same {SAME_LINES} lines twice have one name waiting for them")


def _body(module: Module, function: Function) -> list[tuple[int, str]]:
    """Number and text of the lines that do something, without signature and docstring."""
    steps = function.body[1:] if ast.get_docstring(function) else function.body
    if not steps:
        return []
    lines = module.text.splitlines()
    numbered = [
        (number, lines[number - 1].strip()) for number in range(steps[0].lineno, (function.end_lineno or 0) + 1)
    ]
    return [(number, text) for number, text in numbered if text and not text.startswith("#")]


def test_every_module_class_and_public_function_says_what_it_promises() -> None:
    silent = [
        f"{_where(module, node)} {getattr(node, 'name', 'the module')}"
        for module in modules()
        for node in _documented(module)
        if not ast.get_docstring(node)
    ]
    assert not silent, _told(silent, "a docstring promises first")


def _documented(module: Module) -> Iterator[ast.Module | ast.ClassDef | Function]:
    yield module.tree
    for node in module.tree.body:
        yield from _public_parts(node)


def _public_parts(node: ast.AST) -> Iterator[ast.ClassDef | Function]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
        if any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list):
            return
        yield node
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            yield from _public_parts(part)
