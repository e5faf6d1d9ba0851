"""The written pages: their sections, code blocks, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.surface.source import ROOT

_FENCE = re.compile(r"^```(\w*)(.*)$")
_HEADING = re.compile(r"^(#{1,6}) (.+)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
_IN_PAGE = "#"


class Code(NamedTuple):
    """A fenced block: its language, its text, the line it begins on, and why it is not run, if it is not."""

    language: str
    text: str
    line: int
    not_run: str | None = None


@dataclass
class Section:
    """What stands below one heading of the second level; the first of a page is what stands above all of them."""

    title: str
    codes: list[Code] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """The path from the root of the project."""
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        """The whole page."""
        return self.path.read_text(encoding="utf-8")

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """Each line with its number and whether it stands in a fenced block (the fences do too)."""
        inside = False
        for number, line in enumerate(self.text.splitlines(), 1):
            fence = line.startswith("```")
            yield number, line, inside or fence
            inside = inside != fence

    def sections(self) -> list[Section]:
        """The page cut at its headings of the second level."""
        sections, block, reason = [Section("")], None, None
        for number, line, _ in self.lines():
            fence = _FENCE.match(line)
            if fence and block is None:
                block = (fence[1], number, list[str]())
            elif fence and block is not None:
                sections[-1].codes.append(Code(block[0], "\n".join(block[2]), block[1], reason))
                block = reason = None
            elif block is not None:
                block[2].append(line)
            elif line.startswith("## "):
                sections.append(Section(line[3:]))
            elif line.strip():
                found = _NOT_RUN.match(line)
                reason = found[1] if found else None
        return sections

    def headings(self) -> list[str]:
        """Every heading, without its marks."""
        return [found[2] for _, line, code in self.lines() if not code and (found := _HEADING.match(line))]

    def anchors(self) -> set[str]:
        """What a link may point at in this page."""
        return {anchor(heading) for heading in self.headings()}

    def links(self) -> Iterator[tuple[int, str]]:
        """Each link with its line."""
        for number, line, code in self.lines():
            if not code:
                for target in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
                    yield number, target


def anchor(heading: str) -> str:
    """The anchor of a heading as readers' tools make it."""
    words = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
    return words.replace(" ", "-")


@cache
def pages() -> tuple[Page, ...]:
    """README and the like, and everything below docs/ and examples/."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return tuple(Page(path) for path in sorted(found))


def page(name: str) -> Page:
    """One page by its path from the root."""
    return Page(ROOT / name)
