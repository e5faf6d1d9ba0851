"""Every example runs as its reader would run it, and prints what its first lines say."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.databases import Database
from tests.surface.source import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says_it_prints(
    path: Path, tmp_path: Path, open_database: Callable[[str], Database]
) -> None:
    text = path.read_text(encoding="utf-8")
    database = open_database("postgres18") if "$DIBS_URL" in text else None
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env={**os.environ, "DIBS_URL": database.url if database else ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if database:
        database.query("drop table orders")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == _promised(text)


def _promised(text: str) -> str:
    told = ast.get_docstring(ast.parse(text), clean=False) or ""
    _, _, shown = told.partition("t prints:\n")
    return dedent(shown).strip() + "\n"


def test_every_example_is_listed_with_what_it_shows() -> None:
    listed = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f"]({path.name})" not in listed] == []
    assert len(EXAMPLES) >= 6
