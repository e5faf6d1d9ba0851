"""How values travel to databases: arrays as text, tables as columns, and the time where it must be told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dibs.model.json_text import SAFE_INTEGER, decode
from dibs.store import postgres, sqlite
from dibs.store.dialect import json_array, json_columns, pg_array, pg_columns
from dibs.store.statement import Block
from tests.unit.fakes import reproducible


def _read(text: str) -> list[str | None]:
    """The elements of an array literal, by the rules of PostgreSQL's manual."""
    assert (text[0], text[-1]) == ("{", "}")
    return list(_elements(text[1:-1]))


def _elements(text: str) -> Iterator[str | None]:
    at = 0
    while at < len(text):
        quoted, element = text[at] == '"', ""
        at += quoted
        while at < len(text) and (text[at] != '"' if quoted else text[at] != ","):
            at += text[at] == "\\"
            element += text[at]
            at += 1
        assert quoted or (element and not set(element) & set('{}" \t\n')), "this must be quoted"
        yield None if not quoted and element.lower() == "null" else element
        at += quoted
        assert at == len(text) or text[at] == ","
        at += 1


TRICKY = st.sampled_from(
    ["", "NULL", "null", "Null", "nullable", ",", "a,b", "{}", '"', "\\", "\\\\,", " a", "a b", "é"]
)
WORDS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=6)
PLAIN = st.text("abcXYZ019_-", max_size=8)


@reproducible
@given(st.lists(TRICKY | WORDS | st.none()) | st.lists(PLAIN) | st.lists(PLAIN | st.sampled_from(["a,b", "", "null"])))
@example(["a,b", "c"])
@example(["a", ""])
@example([",", "a"])
@example([None, "a"])
@example(["a", None])
@example(["NULL", None])
def test_texts_of_an_array_come_back_as_they_were(values: list[str | None]) -> None:
    assert _read(pg_array(values)) == values
    assert _read(pg_array(tuple(values))) == values


@reproducible
@given(st.lists(st.integers() | st.none()))
def test_numbers_of_an_array_come_back_as_they_were(values: list[int | None]) -> None:
    assert [None if text is None else int(text) for text in _read(pg_array(values))] == values


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "{}"),
        ([None, None], "{NULL,NULL}"),
        ([1, -2], "{1,-2}"),
        (["a", "B-9_"], "{a,B-9_}"),
        (["", "x"], '{"","x"}'),
        (["a", "b c"], '{"a","b c"}'),
        (["a", None], '{"a",NULL}'),
        (["0189-null-0"], '{"0189-null-0"}'),
        ([1.5, 2], "{1.5,2}"),
    ],
)
def test_an_array_is_written_like_this(values: list[Any], text: str) -> None:
    assert pg_array(values) == text


def test_a_table_becomes_an_array_for_each_column() -> None:
    assert pg_columns("batch", ids=["a", "b"], tokens=(1, 2), ages=[None, 3]) == {
        "ids": "{a,b}",
        "tokens": "{1,2}",
        "ages": "{NULL,3}",
    }


def test_a_table_becomes_one_json_array_of_rows() -> None:
    made = json_columns("batch", ids=["a", 'b"'], tokens=(1, 2), ages=[None, 3])
    assert made == {"batch": '[["a",1,null],["b\\"",2,3]]'}
    assert json_columns("batch", ids=[]) == {"batch": "[]"}


def test_columns_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="shorter"):
        json_columns("batch", ids=["a", "b"], tokens=[1])


@reproducible
@given(st.lists(st.none() | WORDS | st.integers(-SAFE_INTEGER, SAFE_INTEGER)))
def test_a_json_array_comes_back_as_it_was(values: list[Any]) -> None:
    assert decode(json_array(values)) == values
    assert json_array(tuple(values)) == json_array(values)


def test_a_batch_is_written_as_it_is_for_its_values_were_checked_when_they_came_in() -> None:
    assert json_array([2**60, '{"a": null}', None]) == '[1152921504606846976,"{\\"a\\": null}",null]'


TELLS = Block("any", "select :now, :id")
SILENT = Block("any", "select :id")


def test_a_dialect_with_a_clock_tells_the_time_where_it_is_wanted() -> None:
    timed = sqlite.dialect(lambda: 7)
    given_params: dict[str, Any] = {"id": "a"}
    assert timed.bind(TELLS, given_params) == {"id": "a", "now": 7}
    assert given_params == {"id": "a"}
    assert timed.bind(SILENT, given_params) is given_params


def test_a_server_with_a_clock_of_its_own_is_not_told_the_time() -> None:
    assert postgres.dialect().bind(TELLS, {"id": "a"}) == {"id": "a"}
    assert postgres.dialect(lambda: 7).bind(TELLS, {"id": "a"}) == {"id": "a", "now": 7}


def test_the_clock_of_a_file_is_read_anew_for_each_statement() -> None:
    times = iter([7, 8])
    timed = sqlite.dialect(lambda: next(times))
    assert [timed.bind(TELLS, {})["now"] for _ in range(2)] == [7, 8]
