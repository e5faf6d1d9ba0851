"""The claimers that are kept between two calls of dequeue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from dibs.door.claiming import KEPT, Claimers
from dibs.store.claimer import Claimer


def _made(name: str) -> Callable[[], Claimer]:
    return lambda: cast(Claimer, f"claimer {name}")


def _unwanted() -> Any:
    raise AssertionError("it is known already")


def test_a_claimer_is_made_once_for_its_key() -> None:
    claimers = Claimers()
    first = claimers.get("a", _made("a"))
    assert claimers.get("a", _unwanted) is first
    assert claimers.get("b", _made("b")) is not first


def test_only_so_many_are_kept_and_the_one_longest_unused_goes_first() -> None:
    claimers = Claimers()
    for number in range(KEPT):
        claimers.get(number, _made("old"))
    claimers.get(0, _unwanted)
    for number in range(KEPT - 1):
        claimers.get(-1 - number, _made("new"))
    assert len(claimers) == KEPT
    assert claimers.get(0, _unwanted) == "claimer old"
    assert claimers.get(1, _made("anew")) == "claimer anew"
