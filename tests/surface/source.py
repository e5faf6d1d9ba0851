"""The project's own text, as the tests of its shape read it: modules, functions, imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "dibs"
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Import(NamedTuple):
    """One name that a module imports: where, what, inside a function, for a type checker only."""

    line: int
    target: str
    in_function: bool
    for_types: bool


@dataclass(frozen=True)
class Module:
    """One Python file."""

    path: Path

    @cached_property
    def text(self) -> str:
        """The whole file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The file, parsed."""
        return ast.parse(self.text)

    @property
    def shown(self) -> str:
        """The path a reader would open."""
        return str(self.path.relative_to(ROOT))

    @property
    def place(self) -> str:
        """The path below src/dibs."""
        return str(self.path.relative_to(SOURCE))

    @property
    def room(self) -> str:
        """The folder below src/dibs, or the name of a file that stands there itself."""
        first = self.path.relative_to(SOURCE).parts[0]
        return first.removesuffix(".py")

    @property
    def name(self) -> str:
        """The dotted name it is imported by."""
        parts = self.path.relative_to(SOURCE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def functions(self) -> list[Function]:
        """Every function and method, nested ones too."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in ast.walk(self.tree) if isinstance(node, kinds)]

    def imports(self) -> list[Import]:
        """Every name imported anywhere in the file."""
        return list(_imports(self.tree, False, False))


def _imports(node: ast.AST, in_function: bool, for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for name in node.names:
            yield Import(node.lineno, name.name, in_function, for_types)
    elif isinstance(node, ast.ImportFrom):
        for name in node.names:
            yield Import(node.lineno, _target(str(node.module), name.name), in_function, for_types)
    inside = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    typed = for_types or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, inside, typed)


def _target(module: str, name: str) -> str:
    """`from dibs.store import claim` imports a module, `from dibs.store.claim import START` a part of one."""
    below = module.split(".")[1:]
    is_ours = module == "dibs" or module.startswith("dibs.")
    candidate = SOURCE.joinpath(*below, name)
    found = is_ours and (candidate.with_suffix(".py").exists() or candidate.is_dir())
    return f"{module}.{name}" if found else module


@cache
def modules() -> tuple[Module, ...]:
    """Every Python file of dibs."""
    return tuple(Module(path) for path in sorted(SOURCE.rglob("*.py")))


@cache
def modules_of_tests() -> tuple[Module, ...]:
    """Every Python file below tests/."""
    return tuple(Module(path) for path in sorted((ROOT / "tests").rglob("*.py")))


def code_lines(function: Function) -> int:
    """Lines of a function without its decorators and its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    text = function.body[0]
    return lines - ((text.end_lineno or text.lineno) - text.lineno + 1)


def parameters(function: Function) -> list[str]:
    """Names of the parameters, without self and cls."""
    given = function.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names and names[0] in ("self", "cls") else names
