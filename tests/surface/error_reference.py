"""The codes of errors with their causes, remedies and meanings, for docs/errors.md: what `dibs explain` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dibs import errors as errors_
from dibs.cli.explain import GROUPS, WARNING, text
from dibs.cli.problems import code_of
from dibs.errors import DibsError
from dibs.messages import catalogue

_WIDTH = 120


def errors() -> Iterator[str]:
    """Every code with its page, by group."""
    names = {code_of(kind("x")): kind.__name__ for kind in _kinds()}
    for group, codes in GROUPS.items():
        yield from ("", f"## {catalogue('en')[f'explain.{group}']}")
        for code, status in codes.items():
            end = "A warning" if status == WARNING else f"Exit code {status}"
            name = f", `{names[code]}`" if code in names else ""
            yield from ("", f"### {code}", "")
            yield from _wrapped(f"{_said(code, 'en')} *{end}{name}.*")
            yield from ("", *_wrapped(text(code, "meaning", "en")))
            yield from ("", f"> {_said(code, 'zh')}", ">", f"> {text(code, 'meaning', 'zh')}")
    yield ""


def _kinds() -> Iterator[type[DibsError]]:
    return (kind for kind in vars(errors_).values() if isinstance(kind, type) and issubclass(kind, DibsError))


def _said(code: str, lang: str) -> str:
    gap = " " if lang == "en" else ""
    return f"{text(code, 'cause', lang)}{gap}{text(code, 'remedy', lang)}"


def _wrapped(words: str) -> list[str]:
    return textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False)
