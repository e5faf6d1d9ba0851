"""`pip install dibs` brings few packages, each under a licence that asks for nothing but its notice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest

EXPECTED = {"msgspec", "click", "rich", "markdown-it-py", "mdurl", "pygments"}
"""What the base install brings, nothing else. A new one needs a reason in CHANGELOG.md."""

PERMISSIVE = re.compile(r"^(MIT|BSD|ISC|Apache|PSF|0BSD|Unlicense|Python Software)", re.IGNORECASE)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _asked_for(name: str) -> Iterator[str]:
    """Direct dependencies without extras, as this machine would install them."""
    for line in distribution(name).requires or []:
        if "extra ==" not in line and "sys_platform" not in line and "python_version <" not in line:
            yield _canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0])


def _closure() -> set[str]:
    found: set[str] = set()
    new = {"dibs"}
    while new:
        found |= new
        new = {dependency for name in new for dependency in _asked_for(name)} - found
    return found - {"dibs"}


def _licence(found: Distribution) -> str:
    told = next((line for key in ("License-Expression", "License") for line in found.metadata.get_all(key) or []), "")
    classifiers = [line.rpartition(" :: ")[2] for line in found.metadata.get_all("Classifier") or []]
    named = [line for line in classifiers if "icense" in line and line != "OSI Approved"]
    return told if 0 < len(told) < 60 else " ".join(named)


def test_the_base_install_brings_only_what_is_known() -> None:
    assert _closure() == EXPECTED


@pytest.mark.parametrize("name", sorted({*EXPECTED, "dibs"}))
def test_every_package_of_the_base_install_is_permissively_licensed(name: str) -> None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        pytest.fail(f"{name} is not installed; is it still needed?")
    assert PERMISSIVE.match(_licence(found)), f"{name}: {_licence(found)!r}"
