"""SQL in named blocks, written for each driver in its own style."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.store.statement import ATOMIC, Block, Part, Rows, Statement, Style, _block, _blocks, load, sql
from tests.unit.fakes import reproducible

STYLES: tuple[Style, ...] = ("pyformat", "format", "qmark", "named", "numeric_dollar")
SELECT = "select :id, :limit where id = :id"


@pytest.mark.parametrize(
    ("style", "text", "order"),
    [
        ("pyformat", "select %(id)s, %(limit)s where id = %(id)s", ()),
        ("format", "select %s, %s where id = %s", ("id", "limit", "id")),
        ("qmark", "select ?, ? where id = ?", ("id", "limit", "id")),
        ("named", "select :id, :limit where id = :id", ()),
        ("numeric_dollar", "select $1, $2 where id = $1", ("id", "limit")),
    ],
)
def test_parameters_are_written_as_each_driver_wants_them(style: Style, text: str, order: tuple[str, ...]) -> None:
    assert Part(SELECT).compiled(style) == (text, order)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "text",
    [
        "select now()::timestamptz",
        "select ':id'",
        "select 'it''s :id'",
        "select 'a' || ':id' || 'b'",
        "select x:y",
        "select '12:30:00'::time",
    ],
)
def test_a_colon_that_begins_no_parameter_is_left_alone(text: str, style: Style) -> None:
    block = Part(text)
    assert block.compiled(style) == (text, ())
    assert block.parameters == frozenset()


@pytest.mark.parametrize("style", STYLES)
def test_a_percent_sign_is_doubled_where_the_driver_formats_with_it(style: Style) -> None:
    text, _ = Part("select 7 % 2, 'a%' like :pattern").compiled(style)
    assert text.count("%%") == (2 if style in ("pyformat", "format") else 0)
    if style == "pyformat":
        assert text % {"pattern": "x"} == "select 7 % 2, 'a%' like x"
    if style == "format":
        assert text % ("x",) == "select 7 % 2, 'a%' like x"


PIECES = st.lists(st.sampled_from([":id", ":limit", ":worker_id", "'a:id'", "''", "x::text", ", ", "100 % 3", "\n"]))


@reproducible
@given(PIECES)
def test_every_style_asks_for_the_same_parameters_in_the_same_places(pieces: list[str]) -> None:
    block = Part(" ".join(pieces))
    wanted = [piece[1:] for piece in pieces if piece.startswith(":")]
    assert block.parameters == set(wanted)
    assert block.compiled("format")[1] == block.compiled("qmark")[1] == tuple(wanted)
    assert block.compiled("numeric_dollar")[1] == tuple(dict.fromkeys(wanted))
    assert block.compiled("qmark")[0].count("?") == len(wanted)
    assert block.compiled("named")[0] == block.text


def test_a_text_is_compiled_once_for_each_style() -> None:
    block = Part(SELECT)
    assert block.compiled("qmark") is block.compiled("qmark")
    assert block.compiled("format") is not block.compiled("qmark")


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("select 1", True),
        ("with a as (select 1) update b set c = 1", True),
        ("pragma data_version", True),
        ("update a set b = 1 returning c", True),
        ("update a set b = 1", False),
        ("insert into a select 1", False),
    ],
)
def test_a_statement_with_rows_to_fetch_is_told_from_one_without(text: str, answers: bool) -> None:
    assert Part(text).answers is answers


SOURCE = """-- The file's own words.
-- :now  is explained here, with an it's.

-- name: first
-- What it does.
select :now, ':now',

       :nowhere

-- name: second plan: fresh
update a set b = :b
"""


def test_blocks_are_read_without_their_comments_and_empty_lines() -> None:
    assert list(_blocks(SOURCE, None)) == [
        ("first", False, "select :now, ':now',\n       :nowhere"),
        ("second", True, "update a set b = :b"),
    ]


def test_the_databases_clock_takes_the_place_of_now_only() -> None:
    [(_, _, text), _] = _blocks(SOURCE, "clock()")
    assert text.splitlines()[0].startswith("select clock(),")
    assert ":nowhere" in text


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "mariadb"])
def test_a_database_that_tells_the_time_is_not_asked_to_be_told(dialect: str) -> None:
    told = {name for name, block in load(dialect, None).items() if "now" in block.parameters}
    assert "claim" in told
    assert not [name for name, block in load(dialect, "clock()").items() if "now" in block.parameters]


def test_a_dialect_is_read_once_and_its_blocks_are_shared() -> None:
    assert load("sqlite", None) is load("sqlite", None)


TWO_PARTS = """-- name: move
-- What it does.
insert into b select a from c where d = :d returning a

-- then: it goes from where it was
delete from c where a in (select value from json_each(:found)) and e < :now
"""


def _moving(now: str | None = None) -> Block:
    [(name, fresh, text)] = _blocks(TWO_PARTS, now)
    return Block(name, text, fresh)


def test_a_statement_of_several_parts_is_cut_where_it_says_then() -> None:
    first, second = _moving().parts
    assert first.text == "insert into b select a from c where d = :d returning a"
    assert second.text == "delete from c where a in (select value from json_each(:found)) and e < :now"
    assert _moving().parameters == {"d", "now"}
    assert _moving("clock()").parameters == {"d"}


def _sent(block: Block, *answers: Rows) -> tuple[list[dict[str, Any]], Rows]:
    """The parameters of each part that is sent, and the answer, where the parts answer this."""
    sending = block.sent({"d": 1}, lambda values: "+".join(map(str, values)))
    seen: list[dict[str, Any]] = []
    try:
        _, params = next(sending)
        for rows in answers:
            seen.append(params)
            _, params = sending.send(rows)
    except StopIteration as done:
        found: Rows = done.value
        return seen, found
    raise AssertionError("more is sent than was answered")


def test_later_parts_are_told_what_the_first_one_found() -> None:
    seen, answer = _sent(_moving(), [(7, "x"), (8, "y")], [])
    assert seen == [{"d": 1}, {"d": 1, "found": "7+8"}]
    assert answer == [(7, "x"), (8, "y")]


def test_where_nothing_was_found_nothing_more_is_sent() -> None:
    assert _sent(_moving(), []) == ([{"d": 1}], [])


def test_a_part_without_rows_does_not_end_a_statement() -> None:
    block = Block("any", "update a set b = 1\n-- then: look\nselect a, :found\n-- then: again\nselect 2")
    seen, answer = _sent(block, [], [(7,)], [(9,)])
    assert seen == [{"d": 1}, {"d": 1}, {"d": 1, "found": "7"}]
    assert answer == [(7,)]


def _send(block: Block, params: dict[str, Any], *answers: Rows) -> tuple[list[tuple[str, list[Any]]], Rows]:
    """Each text that is sent with the values it asks for, in a driver's own order, and the answer."""
    sending, seen = block.sent(params, str), list[tuple[str, list[Any]]]()
    try:
        part, given = next(sending)
        for rows in answers:
            text, order = part.compiled("format")
            seen.append((text, [given[name] for name in order]))
            part, given = sending.send(rows)
    except StopIteration as done:
        found: Rows = done.value
        return seen, found
    raise AssertionError("more is sent than was answered")


def _made(text: str, now: str | None = None) -> Block:
    [(name, fresh, body)] = _blocks(f"-- name: any\n{text}", now)
    return _block(name, body, fresh)


def test_another_way_is_tried_where_nothing_was_found() -> None:
    block = _made("select 1\n-- else: make it\ninsert into a values (:id)\n-- then:\nselect 2\n-- else:\nselect 3")
    assert _send(block, {"id": 7}, [(1,)]) == ([("select 1", [])], [(1,)])
    texts, answer = _send(block, {"id": 7}, [], [], [], [(3,)])
    assert [text for text, _ in texts] == ["select 1", "insert into a values (%s)", "select 2", "select 3"]
    assert answer == [(3,)]
    assert (len(block.parts), block.plain) == (4, False)


def test_a_statement_for_each_row_is_sent_once_for_all_of_them() -> None:
    block = _made("-- each: lanes (queue, at)\nselect :queue, :at, :now, ':at'")
    assert (block.parameters, block.plain) == ({"lanes", "now"}, False)
    texts, answer = _send(block, {"lanes": '[["a",1],["b",2]]', "now": 9}, [("a",), ("b",)])
    assert texts == [("select %s, %s, %s, ':at'\nunion all\nselect %s, %s, %s, ':at'", ["a", 1, 9, "b", 2, 9])]
    assert answer == [("a",), ("b",)]
    assert _send(block, {"lanes": "[]", "now": 9}) == ([], [])


def test_more_rows_than_one_statement_holds_are_sent_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dibs.store.statement.MOST_BRANCHES", 2)
    block = _made("-- each: lanes (n)\nselect :n")
    texts, answer = _send(block, {"lanes": "[[1],[2],[3]]"}, [(1,), (2,)], [(3,)])
    assert [values for _, values in texts] == [[1, 2], [3]]
    assert answer == [(1,), (2,), (3,)]


def test_a_hop_goes_on_from_what_was_found_until_nothing_is() -> None:
    block = _made('-- hop: {"queue": "", "priority": 0}\nselect queue where queue > :queue and :priority < :cap')
    assert (block.parameters, block.plain) == ({"cap"}, False)
    texts, answer = _send(block, {"cap": 5}, [("a", 1)], [("b", 2)], [])
    assert [values for _, values in texts] == [["", 0, 5], ["a", 1, 5], ["b", 2, 5]]
    assert answer == [("a", 1), ("b", 2)]


def test_a_word_of_the_file_is_written_out_where_it_is_used() -> None:
    source = "-- let micros(x): diff(x, xx)\n\n-- name: any\nselect micros(:now), micros(a.b), micros, mymicros(1)"
    [(_, _, text)] = _blocks(source, "clock()")
    assert text == "select diff(clock(), xx), diff(a.b, xx), micros, mymicros(1)"


def test_a_statement_may_have_a_parameter_called_name() -> None:
    params: dict[str, Any] = {"name": "mail"}
    assert sql("add_chore", **params) == Statement("add_chore", {"name": "mail"})


def test_the_sign_of_a_transaction_is_itself_and_no_equal() -> None:
    assert sql("atomic") == ATOMIC
    assert sql("atomic") is not ATOMIC
