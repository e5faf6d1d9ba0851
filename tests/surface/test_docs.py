"""What is written is true: the code of every page runs, every link leads somewhere, every claim of a test has one."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from dibs.cli.tree import root
from tests.support.databases import Database
from tests.surface.pages import Code, Page, Section, page, pages
from tests.surface.source import ROOT

RUN = ("python", "console")
SHOWN_URL = "postgresql://localhost/app"
NOT_RUN_AT_MOST = 12
OUTSIDE = (
    "https://www.postgresql.org/docs/",
    "https://sqlite.org/",
    "https://keepachangelog.com/",
    "https://semver.org/",
)
"""The only places outside the project that pages link to."""

Open = Callable[[str], Database]


def _programs() -> Iterator[object]:
    for found in pages():
        first, *rest = found.sections()
        for section in [first, *rest]:
            codes = [*first.codes, *section.codes] if section is not first else first.codes
            if any(code.language in RUN for code in section.codes):
                yield pytest.param(found, codes, id=f"{found.name}-{section.title or 'beginning'}")


def _whole_pages() -> Iterator[object]:
    for found in pages():
        codes = [code for section in found.sections() for code in section.codes if code.language in RUN]
        if len({id(section) for section in found.sections() if section.codes}) > 1 and codes:
            yield pytest.param(found, codes, id=f"{found.name}-from top to bottom")


@pytest.mark.parametrize(("found", "codes"), [*_programs(), *_whole_pages()])
def test_the_code_of_a_page_runs_as_it_is_written(
    found: Page, codes: list[Code], tmp_path: Path, open_database: Open
) -> None:
    steps = [code for code in codes if code.language in RUN and code.not_run is None]
    url = ""
    if any("postgresql://" in code.text for code in steps):
        database = open_database("postgres18")
        url = database.url
    finished = _run(found, steps, url, tmp_path)
    if url:
        database.query("drop schema public cascade; create schema public")
    assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr[-3000:]}"


def _run(found: Page, steps: list[Code], url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = [(code.language, code.text.replace(SHOWN_URL, url), f"{found.name}:{code.line}") for code in steps]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DIBS_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.surface.page_program"],
        input=json.dumps(program),
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=110,
    )


def test_few_blocks_of_code_are_not_run_and_each_says_why() -> None:
    exempt = [f"{found.name}:{code.line} {code.not_run}" for found, code in _codes() if code.not_run]
    assert len(exempt) <= NOT_RUN_AT_MOST, "\n".join(exempt)


def test_every_block_of_code_names_a_language_that_is_known() -> None:
    known = {*RUN, "sh", "text", "toml", "sql", "json", "yaml"}
    unknown = [f"{found.name}:{code.line} {code.language!r}" for found, code in _codes() if code.language not in known]
    assert not unknown, f"say what it is (python and console are run):\n{unknown}"


@pytest.mark.parametrize("found", pages(), ids=lambda found: found.name)
def test_commands_for_a_bare_machine_name_files_and_targets_that_are_there(found: Page) -> None:
    """Blocks in `sh` install dibs or run all tests, which no test can do; what they name is checked."""
    shown = "\n".join(code.text for section in found.sections() for code in section.codes if code.language == "sh")
    missing = [
        name for name in re.findall(r"(?:tests|bench|chaos|examples)/[\w/]+\.py", shown) if not (ROOT / name).exists()
    ]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    missing += [target for target in re.findall(r"\bmake ([a-z]+)", shown) if target not in targets]
    assert not missing, f"{found.name} names {missing}"


def _codes() -> Iterator[tuple[Page, Code]]:
    for found in pages():
        for section in found.sections():
            for code in section.codes:
                yield found, code


@pytest.mark.parametrize("found", pages(), ids=lambda found: found.name)
def test_every_link_leads_somewhere(found: Page) -> None:
    broken = [f"{found.name}:{line} {target}" for line, target in found.links() if not _resolves(found, target)]
    assert not broken, broken


def _resolves(found: Page, target: str) -> bool:
    if "://" in target:
        return target.startswith(OUTSIDE)
    place, _, anchor = target.partition("#")
    file = (found.path.parent / place).resolve() if place else found.path
    if not file.exists() or ROOT not in (file, *file.parents):
        return False
    return not anchor or anchor in Page(file).anchors()


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = {ROOT / "README.md"}
    while waiting:
        path = waiting.pop()
        reached.add(path)
        local = {target.partition("#")[0] for _, target in Page(path).links() if "://" not in target}
        linked = {(path.parent / target).resolve() for target in local if target}
        folders = {path / "README.md" for path in linked if path.is_dir()}
        waiting |= {path for path in linked | folders if path.suffix == ".md" and path.exists()} - reached
    assert {found.path for found in pages()} <= reached


TESTED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize("found", pages(), ids=lambda found: found.name)
def test_every_test_that_a_page_names_exists(found: Page) -> None:
    missing = [f"{path}::{name}" for path, name in TESTED.findall(found.text) if name not in _tests_in(path)]
    assert not missing, f"{found.name} names tests that are not there: {missing}"


def _tests_in(path: str) -> set[str]:
    file = ROOT / path
    if not file.exists():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


COMMAND = re.compile(r"(?:`|^\$ )dibs ([a-z]+)(?: ([a-z-]+))?")


@pytest.mark.parametrize("found", pages(), ids=lambda found: found.name)
def test_every_command_that_a_page_names_exists(found: Page) -> None:
    named = {match for _, line, _ in found.lines() for match in COMMAND.findall(line)}
    unknown = [words for words in named if not _is_command(*words)]
    assert not unknown, f"{found.name} names commands that are not there: {unknown}"


def _is_command(first: str, second: str) -> bool:
    context = click.Context(root)
    command = root.get_command(context, first)
    if not isinstance(command, click.Group):
        return command is not None
    return not second or command.get_command(context, second) is not None


def test_every_requirement_points_to_a_test_a_command_or_a_later_part() -> None:
    rows = _rows(page("docs/requirements.md"))
    assert len(rows) > 100
    evidence = re.compile(r"`tests/[\w/]+\.py::\w+`|`dibs [\w\- ]+`|\]\([\w./#-]+\)|^Part [2-5]: not yet$")
    bare = [row[0] for row in rows if not evidence.search(row[-1])]
    assert not bare, f"no test, command, page or later part: {bare}"


def _rows(found: Page) -> list[list[str]]:
    wanted = re.compile(r"\| [SD]\d")
    rows = [line.strip("|").split(" | ") for _, line, code in found.lines() if not code and wanted.match(line)]
    return [[cell.strip(" |") for cell in row] for row in rows]


def test_a_guide_page_says_what_happens_when_it_fails_and_its_limits() -> None:
    guide = [found for found in pages() if found.name.startswith("docs/guide/") and "limits" not in found.path.stem]
    assert len(guide) >= 7
    for found in guide:
        titles = [section.title for section in found.sections()]
        assert "When it fails" in titles, found.name
        assert "Limits" in titles, found.name


def test_nobody_promises_what_no_queue_can_keep() -> None:
    big_words = re.compile("exactly[- ]once" + " deliver", re.IGNORECASE)
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    texts = {file: (ROOT / file).read_bytes().decode(errors="ignore") for file in files if (ROOT / file).is_file()}
    found = [file for file, text in texts.items() if big_words.search(text)]
    assert not found, f"promise P12: {found}"


def test_no_page_names_a_machine_a_registry_or_a_secret() -> None:
    private = re.compile(r"/(work|home|root|tmp)/|pypi\.|registry\.(?!py)|npmjs|ghcr\.|docker\.io|AKIA[0-9A-Z]{16}")
    found = [
        f"{found.name}:{number} {line.strip()}"
        for found in pages()
        for number, line, _ in found.lines()
        if private.search(line)
    ]
    assert not found, found


def test_the_sections_of_a_page_are_cut_at_its_second_headings(tmp_path: Path) -> None:
    first, second = "# Page\n\n```python\na = 1\n```\n", "## One\n\n<!-- not run: why -->\n```console\n$ x\n```\n"
    text = f"{first}\n{second}\n```python\n## no\n```\n"
    (tmp_path / "page.md").write_text(text)
    assert Page(tmp_path / "page.md").sections() == [
        Section("", [Code("python", "a = 1", 3)]),
        Section("One", [Code("console", "$ x", 10, "why"), Code("python", "## no", 14)]),
    ]
