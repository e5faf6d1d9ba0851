"""Batches are cut where one statement would carry too much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dibs.model.load import LOAD, loads
from tests.unit.fakes import reproducible


@reproducible
@given(st.lists(st.integers(0, 2 * LOAD)), st.integers(1, 5))
def test_nothing_is_lost_and_no_part_is_too_heavy_unless_it_is_one_item(sizes: list[int], most: int) -> None:
    parts = [sizes[cut] for cut in loads(sizes, most)]
    assert [size for part in parts for size in part] == sizes
    for part in parts:
        assert 1 <= len(part) <= most
        assert len(part) == 1 or sum(part) <= LOAD


def test_what_fits_is_not_cut_into_parts() -> None:
    assert list(loads([], 5)) == []
    assert list(loads([0] * 5, 5)) == [slice(0, 5)]
    assert list(loads([LOAD // 2] * 4, 9)) == [slice(0, 2), slice(2, 4)]
