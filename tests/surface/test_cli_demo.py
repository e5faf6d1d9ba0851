"""`dibs demo`: every scene is played, nothing is lost, and the README shows what it prints."""

from __future__ import annotations

import re
from pathlib import Path

from dibs.cli.demo_story import BURST
from tests.surface.pages import page
from tests.surface.terminal import Terminal

CHANGING = re.compile(r"[\d,]+ jobs a second|in \d+ seconds|\w+:\d+:\w{4}")
"""What differs from one performance to the next."""


def _steady(text: str) -> str:
    return CHANGING.sub("…", text)


def test_the_readme_shows_how_the_demo_ends(tmp_path: Path) -> None:
    played = Terminal(tmp_path).run("demo").lines
    told = "\n".join(played)
    scenes = ["kill -9", "and it held the import", "charge_card failed in attempt 1", f"a burst of {BURST:,} jobs"]
    assert [scene for scene in scenes if scene not in told] == []
    assert not list(tmp_path.iterdir())
    readme = page("README.md").text
    [shown] = [
        code.text for section in page("README.md").sections() for code in section.codes if "Nothing" in code.text
    ]
    assert _steady(shown).splitlines() == _steady("\n".join(played[-len(shown.splitlines()) :])).splitlines()
    assert f"a burst of {BURST:,} jobs" in readme


def test_at_a_screen_the_demo_is_a_live_view(tmp_path: Path) -> None:
    seen = Terminal(tmp_path).at_screen("demo", COLUMNS="80", LINES="30", DIBS_LANG="zh")
    assert seen.code == 0
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", seen.out)
    assert max(int(left.replace(",", "")) for left in re.findall(r"burst +([\d,]+) ", plain)) > BURST // 10
    assert "没有丢失" in plain
    assert "Traceback" not in plain
