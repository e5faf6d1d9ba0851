"""What pages say about the source is what it says: `python -m tests.surface.generated` brings them up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs import Dibs, Status
from tests.surface.generated import MADE, made_parts, renewed
from tests.surface.pages import Page, page, pages
from tests.surface.source import SOURCE, modules

DOCS = [found for found in pages() if made_parts(found.text)]


@pytest.mark.parametrize("found", DOCS, ids=lambda found: found.name)
def test_the_made_parts_of_a_page_are_up_to_date(found: Page) -> None:
    assert found.text == renewed(found.text), f"{found.name} is out of date: run python -m tests.surface.generated"


def test_every_made_part_stands_on_one_page() -> None:
    placed = [name for found in DOCS for name in made_parts(found.text)]
    assert sorted(placed) == sorted(MADE)


def test_every_room_and_every_file_has_its_sentence() -> None:
    [text] = [found.text for found in DOCS if "rooms" in made_parts(found.text)]
    for module in modules():
        if module.path.name != "__init__.py":
            assert f"| `{module.path.name}` | " in text, module.shown
    for path in SOURCE.rglob("*.sql"):
        assert f"| `{path.name}` | " in text, path


def test_every_service_of_a_worker_is_in_the_table_of_threads(tmp_path: Path) -> None:
    jobs = Dibs(f"sqlite:///{tmp_path / 'jobs.db'}")
    text = page("docs/architecture.md").text
    missing = [service.name for service in jobs.worker().services if f"| `dibs-{service.name}` | " not in text]
    jobs.close()
    assert not missing


def test_every_status_is_explained_in_the_glossary() -> None:
    text = page("docs/glossary.md").text
    assert not [status for status in Status if f"| **{status}** | " not in text]


def test_every_decision_is_listed_with_its_title() -> None:
    listed = page("docs/decisions/README.md").text
    for found in pages():
        if found.name.startswith("docs/decisions/0"):
            number, _, title = found.headings()[0].partition(". ")
            assert f"[{int(number):04}]({found.path.name}) | {title} |" in listed, found.name
