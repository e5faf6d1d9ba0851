"""What goes into the store as JSON comes out the same; what could not is refused, wherever it hides."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dibs.errors import InvalidPayload, PayloadTooLarge
from dibs.model.json_text import DEPTH_LIMIT, SAFE_INTEGER, clean, decode, encode, encode_plain
from tests.unit.fakes import TEXTS, VALUES, Opaque, reproducible

POISONS = st.sampled_from(
    [math.nan, math.inf, -math.inf, "\x00", "a\x00b", SAFE_INTEGER + 1, -SAFE_INTEGER - 1, 10**30, "\ud800", Opaque()]
)
PLACES = st.lists(TEXTS | st.integers(0, 3), max_size=6)


@reproducible
@given(VALUES)
@example(["null", None, "\\u0000", "[" * 100, "{" * 100, "9007199254740993", 9007199254740992, 1e16, -0.0, "\u2028"])
def test_a_value_that_json_can_hold_comes_back_as_it_was(value: Any) -> None:
    assert decode(encode(value)) == value


@reproducible
@given(VALUES, POISONS, PLACES)
def test_what_json_cannot_hold_is_found_wherever_it_hides(innocent: Any, poison: Any, places: list[str | int]) -> None:
    value: Any = poison
    for place in places:
        value = {place: value, "beside": innocent} if isinstance(place, str) else [innocent] * place + [value]
    with pytest.raises(InvalidPayload):
        encode(value)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (math.nan, r"nan at \$,"),
        ([0, {"a": [math.inf]}], r"inf at \$\[1\]\.a\[0\],"),
        ({"a": (1, 2**53 + 1)}, r"9007199254740993 at \$\.a\[1\]:"),
        ({"a": {"\x00": 1}}, r"NUL character at \$\.a,"),
    ],
)
def test_an_error_names_the_thing_and_the_place(value: Any, place: str) -> None:
    with pytest.raises(InvalidPayload, match=f"The result has .*{place}"):
        encode(value, "result")


def _nested(depth: int, inner: Any = 1) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def test_nesting_is_kept_up_to_its_limit_and_refused_beyond() -> None:
    for kept in (_nested(DEPTH_LIMIT), _nested(DEPTH_LIMIT, None)):
        assert decode(encode(kept)) == kept
    with pytest.raises(InvalidPayload, match="more than 64 deep"):
        encode(_nested(DEPTH_LIMIT + 1))
    with pytest.raises(InvalidPayload, match="more than 64 deep"):
        encode({"a": _nested(DEPTH_LIMIT)})


def test_many_lists_beside_each_other_are_not_deep() -> None:
    value: list[Any] = [[[]] for _ in range(1_000)]
    assert decode(encode(value)) == value


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    y: float | None = None


class Pair(NamedTuple):
    left: int
    right: str


class Struct(msgspec.Struct):
    tags: set[str]


class Model(pydantic.BaseModel):
    at: datetime
    inner: dict[str, Decimal]


MOMENT = datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MOMENT, '"2030-01-02T03:04:05.000006Z"'),
        (date(2030, 1, 2), '"2030-01-02"'),
        (timedelta(seconds=90), '"PT90S"'),
        (UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        (Decimal("1.10"), '"1.10"'),
        (b"\x00\xff", '"AP8="'),
        (Colour.RED, '"red"'),
        (Level.HIGH, "3"),
        (Point(1), '{"x":1,"y":null}'),
        (Pair(1, "b"), '[1,"b"]'),
        (Struct({"a"}), '{"tags":["a"]}'),
        (Model(at=MOMENT, inner={"a": Decimal("0.5")}), '{"at":"2030-01-02T03:04:05.000006Z","inner":{"a":"0.5"}}'),
        ({7: "a"}, '{"7":"a"}'),
        (OrderedDict(b=1, a=(2,)), '{"b":1,"a":[2]}'),
        ("é\U0001f4ee", '"é\U0001f4ee"'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_known_types_are_written_like_this(value: Any, text: str) -> None:
    assert encode(value).decode() == text


class Loop:
    """A stranger that says of itself that it is a model, and answers with itself."""

    def __repr__(self) -> str:
        return "a loop"

    def model_dump(self, mode: str) -> Loop:
        return self


@pytest.mark.parametrize("value", [Loop(), Model, {None: 1}, {True: 1}, {(1,): 1}, range(3), 1j], ids=repr)
def test_a_value_without_a_form_in_json_is_refused(value: Any) -> None:
    with pytest.raises(InvalidPayload, match="The tags cannot be written as JSON"):
        encode([value], "tags")


def test_the_limit_counts_bytes_of_the_text_and_not_letters() -> None:
    assert len(encode("é" * 4, limit=10)) == 10
    with pytest.raises(PayloadTooLarge, match="has 12 bytes, the limit is 10") as raised:
        encode("é" * 5, limit=10)
    assert raised.value.data == {"size": 12}


def test_a_text_over_the_limit_is_refused_before_it_is_searched() -> None:
    with pytest.raises(PayloadTooLarge):
        encode([math.nan] * 1_000, limit=10)


@reproducible
@given(st.dictionaries(TEXTS, TEXTS | st.booleans() | st.integers(-SAFE_INTEGER, SAFE_INTEGER), max_size=4))
def test_plain_arguments_are_written_the_same_in_the_short_way(value: dict[str, Any]) -> None:
    assert encode_plain(value, tuple(value.values()), 10_000) == encode(value)


@pytest.mark.parametrize("value", ["\x00", "x" * 100, msgspec.Raw(b"1")], ids=["nul", "long", "raw"])
def test_what_needs_a_closer_look_is_not_written_in_the_short_way(value: Any) -> None:
    assert encode_plain({"a": value}, (value,), 50) is None


ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=60)


@reproducible
@given(ANY_TEXT, st.integers(1, 40))
def test_cleaned_text_can_be_stored_anywhere_and_is_bounded(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned) <= limit
    assert decode(encode(cleaned)) == cleaned
    assert clean(cleaned, limit) == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("a\nb\té\U0001f4ee", "a\nb\té\U0001f4ee"),
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a?b"),
        ("1234567890", "1234567890"),
        ("12345678901", "123456789…"),
    ],
)
def test_cleaning_changes_no_more_than_it_must(text: str, cleaned: str) -> None:
    assert clean(text, 10) == cleaned
