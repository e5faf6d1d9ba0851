"""Both catalogues hold exactly what is said, with the same values; every error code has its page in both languages."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from typing import Any

import pytest

from dibs import errors
from dibs.cli import explain, problems
from dibs.cli.grammar import Command, Group
from dibs.cli.tree import root
from dibs.errors import DibsError
from dibs.messages import LANGUAGES, asked_for, catalogue, closest, language, say, speak
from tests.surface.pages import page
from tests.surface.source import Module, modules
from tests.surface.test_cli_frame import ALL

SAYING = {"say", "option", "argument", "Option"}
ERRORS = page("docs/errors.md")


def _literals(module: Module) -> Iterator[str]:
    """Keys that are written out: say("..."), key="...", and the halves of an `if` between two of them."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            keys = [item.value for item in node.keywords if item.arg == "key"]
            if name == "say" and node.args:
                key = node.args[0]
                keys = [key.body, key.orelse] if isinstance(key, ast.IfExp) else [key]
            if name in SAYING:
                yield from (str(key.value) for key in keys if isinstance(key, ast.Constant))
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.Assign)) and "say(" in ast.unparse(node):
            yield from (text for text in _texts(node) if text in catalogue("en"))


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and re.fullmatch(r"[\w.\-]+", part.value):
            yield part.value


def _patterns(module: Module) -> Iterator[str]:
    """Keys that are put together, such as say(f"verb.{verb}"), as patterns."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "say" and node.args:
            key = node.args[0]
            if isinstance(key, ast.JoinedStr) and isinstance(key.values[0], ast.Constant):
                yield "".join(
                    re.escape(part.value) if isinstance(part, ast.Constant) else r"[\w\-]+(\.[\w\-]+)*"
                    for part in key.values
                )


SAID = {text for module in modules() for text in _literals(module)}
PATTERNS = {pattern for module in modules() for pattern in _patterns(module)}


def test_every_text_that_is_said_is_in_the_catalogue() -> None:
    unknown = sorted(text for text in SAID if "." in text and text not in catalogue("en"))
    assert not unknown


def test_every_text_of_the_catalogue_is_said_somewhere() -> None:
    helps = {f"help.{path.replace(' ', '.')}" for path in ALL} | {"help.dibs"}
    errors_ = {f"error.{code}.{part}" for code in CODES for part in PARTS}
    used = SAID | helps | errors_
    parts = [pattern for pattern in PATTERNS if not pattern.startswith(("help", "error"))]
    silent = [key for key in catalogue("en") if key not in used and not any(re.fullmatch(p, key) for p in parts)]
    assert not silent


def test_every_pattern_of_keys_finds_some() -> None:
    assert not [pattern for pattern in PATTERNS if not any(re.fullmatch(pattern, key) for key in catalogue("en"))]


def test_both_languages_have_the_same_keys_in_the_same_order() -> None:
    assert list(catalogue("zh")) == list(catalogue("en"))


@pytest.mark.parametrize("key", catalogue("en"))
def test_a_text_has_the_same_values_in_both_languages(key: str) -> None:
    english, chinese = catalogue("en")[key], catalogue("zh")[key]
    assert _values(english) == _values(chinese)
    assert chinese.strip()


def _values(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_chinese_texts_are_chinese() -> None:
    same = [key for key, text in catalogue("zh").items() if not re.search(r"[一-鿿]", text)]
    allowed = {"title.id", "usage.bad_value", "usage.general", "act.refused", "option.set_backoff"} | {
        "worker.count",
        "worker.gap",
    }
    assert set(same) <= allowed, sorted(set(same) - allowed)


def _codes() -> Iterator[str]:
    """The code of every class of errors, and of every problem and warning that the command line knows."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, DibsError):
            yield problems.code_of(kind("x"))
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                place = {"problem": 1, "warn": 0, "_warning": 1}.get(name)
                if place is not None and len(node.args) > place and isinstance(node.args[place], ast.Constant):
                    yield str(node.args[place].value)
    yield "unexpected"


def _raised() -> Iterator[tuple[str, type[DibsError]]]:
    """Each code that `problem` makes an error of, with the kind of that error."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "problem":
                kind, code = node.args
                if isinstance(code, ast.Constant):
                    yield str(code.value), getattr(errors, ast.unparse(kind))


PARTS = ("cause", "remedy", "meaning")
RAISED = sorted({*_raised()}, key=str)
CODES = sorted({*_codes()} - {"usage"})


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_error_has_a_cause_a_remedy_and_a_meaning_in_both_languages(code: str, lang: str) -> None:
    for part in PARTS:
        assert catalogue(lang)[f"error.{code}.{part}"]


def test_every_code_is_explained_with_the_exit_code_of_those_who_raise_it() -> None:
    assert sorted(explain.exits()) == CODES
    wrong = [(code, kind) for code, kind in RAISED if explain.exits()[code] != problems.exit_code(kind("x"))]
    assert not wrong


def test_every_error_code_has_its_page_and_every_page_its_code() -> None:
    assert sorted(title for title in ERRORS.headings() if re.fullmatch(r"[a-z][a-z\-]+", title)) == CODES


@pytest.mark.parametrize("code", CODES)
def test_the_page_of_an_error_says_what_the_command_says(code: str) -> None:
    section = re.search(rf"^### {code}\n(.*?)(?=^##|\Z)", ERRORS.text, re.MULTILINE | re.DOTALL)
    assert section, code
    for lang in LANGUAGES:
        for part in PARTS:
            assert _line(explain.text(code, part, lang)) in _line(section[1])


def _line(text: str) -> str:
    """One line, as a page may break it."""
    return " ".join(text.split())


def test_the_exit_code_of_a_page_is_that_of_its_error() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, DibsError):
            error = kind("x")
            found = re.search(rf"^### {problems.code_of(error)}\n.*?Exit\s+code\s+(\d)", ERRORS.text, re.M | re.S)
            assert found, kind
            assert int(found[1]) == problems.exit_code(error), kind


def test_a_language_is_known_by_its_locale() -> None:
    assert [closest(name) for name in ("zh", "zh_CN.UTF-8", "zh-Hans", "en_GB", "C", "")] == ["zh"] * 3 + ["en"] * 3
    assert asked_for({"LC_ALL": "zh_TW"}, configured="en") == "en"


def test_help_is_said_in_the_language_chosen_last() -> None:
    before = language()
    try:
        speak("zh")
        assert say("frame.options") == "选项"
        assert _help(root).startswith("用法")
        speak("en")
        assert _help(root).startswith("Usage")
    finally:
        speak(before)


def _help(group: Group | Command) -> str:
    import click

    context: Any = click.Context(group, info_name="dibs")
    return group.get_help(context)
