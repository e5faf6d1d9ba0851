"""Arguments are checked against their annotations, stored as JSON by name, and come back as what they were."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NewType, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import InvalidOption, InvalidPayload, PayloadTooLarge
from dibs.model.job import Job
from dibs.model.json_text import SAFE_INTEGER, decode
from dibs.task.signature import Signature
from tests.unit.fakes import TEXTS, VALUES, Opaque, a_job, reproducible, trip

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]

LIMIT = 10_000
MOMENT = datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    text: str
    price: Decimal = Decimal(0)


class Address(TypedDict, total=False):
    street: str
    number: int


class Point(NamedTuple):
    x: int
    y: int


class Struct(msgspec.Struct):
    name: str
    tags: list[str] = []


class Model(pydantic.BaseModel):
    at: datetime
    size: int = pydantic.Field(gt=0)


UserId = NewType("UserId", int)


def _take(hint: Any) -> Callable[..., Any]:
    """A function of one parameter, `value`, with that annotation."""

    def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = hint
    return take


ROUND_TRIPS: list[tuple[Any, Any]] = [
    (int, SAFE_INTEGER),
    (int, -SAFE_INTEGER),
    (int | None, None),
    (str, "é\U0001f4ee\n"),
    (bool, False),
    (float, 1.5),
    (float, 7),
    (bytes, b"\x00\xff"),
    (datetime, MOMENT),
    (date, date(2030, 1, 2)),
    (timedelta, timedelta(days=3, microseconds=5)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("12.50")),
    (Colour, Colour.BLUE),
    (Literal["a", "b"], "b"),
    (UserId, UserId(7)),
    (Annotated[int, msgspec.Meta(ge=1)], 1),
    (list[int], [1, 2]),
    (tuple[int, str], (1, "a")),
    (set[str], {"a"}),
    (dict[str, list[float]], {"a": [1.5]}),
    (Line, Line("pen", Decimal("1.20"))),
    (list[Line], [Line("pen"), Line("book", Decimal(3))]),
    (Address, {"street": "x", "number": 3}),
    (Point, Point(1, 2)),
    (Struct, Struct("a", ["b"])),
    (Model, Model(at=MOMENT, size=3)),
    (list[Model], [Model(at=MOMENT, size=3)]),
    (Model | None, None),
    (Any, {"a": [1, None, "x"]}),
]


@pytest.mark.parametrize(("hint", "value"), ROUND_TRIPS, ids=lambda value: str(value)[:40])
def test_an_argument_comes_back_as_its_annotation_says(hint: Any, value: Any) -> None:
    back = trip(_take(hint), value)
    assert back == value
    if hint is not float:  # for which a whole number will do
        assert type(back) is type(value)


WRONG: list[tuple[Any, Any]] = [
    (int, "7"),
    (int, 1.5),
    (int, True),
    (int, None),
    (int, SAFE_INTEGER + 1),
    (int, -SAFE_INTEGER - 1),
    (int, math.nan),
    (str, 7),
    (str, None),
    (str, ["a"]),
    (bool, 1),
    (bool, "true"),
    (float, "1.5"),
    (float, True),
    (datetime, "tomorrow"),
    (datetime, 7),
    (UUID, "no uuid"),
    (Decimal, "many"),
    (Colour, "green"),
    (Literal["a", "b"], "c"),
    (Annotated[int, msgspec.Meta(ge=1)], 0),
    (list[int], [1, "2"]),
    (list[int], 1),
    (tuple[int, str], [1]),
    (Line, {"price": "1"}),
    (Line, {"text": 7}),
    (Address, {"number": "3"}),
    (Struct, {"name": "a", "tags": [1]}),
    (Struct, Line("a struct of another kind")),
    (Model, {"at": MOMENT, "size": 0}),
    (Model, {"size": 1}),
]


@pytest.mark.parametrize(("hint", "value"), WRONG, ids=lambda value: str(value)[:40])
def test_an_argument_that_does_not_fit_is_refused_by_its_name(hint: Any, value: Any) -> None:
    with pytest.raises(InvalidPayload, match=r"(?s)'work'.*\$\.value"):
        Signature(_take(hint), "work").payload((value,), {}, LIMIT)


@pytest.mark.parametrize("value", [math.nan, "\x00", "\ud800", {"deep": [math.inf]}, Opaque()], ids=repr)
def test_an_argument_that_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidPayload):
        Signature(_take(Any), "work").payload((value,), {}, LIMIT)


@pytest.mark.parametrize("hint", [str, list[str], Any])
def test_arguments_over_the_limit_are_refused(hint: Any) -> None:
    signature = Signature(_take(hint), "work")
    value: Any = ["x" * 90] if hint == list[str] else "x" * 90
    assert len(signature.payload((value,), {}, 110)) <= 110
    with pytest.raises(PayloadTooLarge, match="payload of 'work'"):
        signature.payload((value,), {}, 90)


def test_a_stored_payload_is_checked_again_when_the_job_runs() -> None:
    signature = Signature(_take(int), "work")
    for payload in ('{"value":"7"}', "{}", '{"value":1,"more":2}', "[1]", "null"):
        with pytest.raises(InvalidPayload, match="does not fit task 'work'"):
            signature.call(print, a_job(payload=payload))


def _every_kind(a: int, /, b: int, c: int = 3, *, d: int, e: int = 5) -> tuple[int, ...]:
    return a, b, c, d, e


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((1, 2), {"d": 4}, (1, 2, 3, 4, 5)),
        ((1,), {"b": 2, "d": 4, "e": 6}, (1, 2, 3, 4, 6)),
        ((1, 2, 9), {"d": 4}, (1, 2, 9, 4, 5)),
    ],
)
def test_parameters_of_every_kind_get_what_was_meant_for_them(args: Any, kwargs: Any, expected: Any) -> None:
    assert trip(_every_kind, *args, **kwargs) == expected == _every_kind(*args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((1, 2, 3, 4), {}, "takes 3 positional arguments, 4 were given"),
        ((1, 2), {"b": 3, "d": 4}, "'b' of task 'work' is given twice"),
        ((1, 2), {"d": 4, "f": 6}, "'f' of task 'work' is unknown"),
        ((1,), {"d": 4}, "missing required field `b`"),
        ((1, 2), {}, "missing required field `d`"),
    ],
)
def test_a_call_that_python_would_refuse_is_refused(args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(InvalidPayload, match=words):
        Signature(_every_kind, "work").payload(args, kwargs, LIMIT)


def test_a_handler_may_take_keywords_only() -> None:
    def remind(*, user: int, text: str = "hello") -> tuple[Any, ...]:
        return user, text

    assert trip(remind, user=7) == (7, "hello")
    with pytest.raises(InvalidPayload, match="takes 0 positional arguments"):
        Signature(remind, "work").payload((7,), {}, LIMIT)


def test_defaults_are_not_stored_but_looked_up_when_the_job_runs() -> None:
    def remind(user: int, text: str = "hello", *, extra: Any = print) -> tuple[Any, ...]:
        return user, text, extra

    signature = Signature(remind, "work")
    assert decode(signature.payload((7,), {}, LIMIT)) == {"user": 7}
    assert trip(remind, 7) == (7, "hello", print)
    assert trip(remind, 7, extra=[1]) == (7, "hello", [1])


def test_a_handler_without_parameters_takes_nothing() -> None:
    def tick() -> str:
        return "tock"

    assert Signature(tick, "work").payload((), {}, LIMIT) == "{}"
    assert trip(tick) == "tock"
    with pytest.raises(InvalidPayload, match="takes 0 positional arguments"):
        Signature(tick, "work").payload((1,), {}, LIMIT)


def test_a_handler_of_any_keywords_gets_them_as_they_are_stored() -> None:
    def collect(kind: Colour, **rest: Any) -> tuple[Any, ...]:
        return kind, rest

    assert trip(collect, Colour.RED, a=1, b={"c": MOMENT}) == (
        Colour.RED,
        {"a": 1, "b": {"c": "2030-01-02T03:04:05.000006Z"}},
    )
    assert trip(collect, kind=Colour.BLUE) == (Colour.BLUE, {})
    with pytest.raises(InvalidPayload, match="nan"):
        Signature(collect, "work").payload((Colour.RED,), {"a": math.nan}, LIMIT)


def test_arguments_without_names_cannot_be_stored() -> None:
    def collect(*values: int) -> None: ...

    with pytest.raises(InvalidOption, match=r"'work' takes \*args"):
        Signature(collect, "work")


def _unresolvable(value: Unknown, job: Job) -> tuple[Any, ...]:
    return value, job.token


def _lowercase_job(value: Unknown, job: Unknown) -> tuple[Any, ...]:
    return value, job


def test_annotations_only_a_type_checker_knows_are_taken_as_plain_json() -> None:
    assert trip(_unresolvable, {"a": [1]}) == ({"a": [1]}, 7)
    assert trip(_lowercase_job, 1, 2) == (1, 2)


@dataclass
class Handler:
    """An object that can be called."""

    offset: int

    def __call__(self, value: int) -> int:
        return value + self.offset

    def method(self, value: int) -> int:
        return value - self.offset


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Handler(3), 10),
        (Handler(3).method, 4),
        (functools.partial(Handler(3).method), 4),
        (functools.partial(_every_kind, 1, 2, d=4), (1, 2, 7, 4, 5)),
    ],
    ids=["object", "method", "partial of a method", "partial"],
)
def test_whatever_can_be_called_can_be_a_handler(function: Any, expected: Any) -> None:
    argument = "c" if isinstance(expected, tuple) else "value"
    assert trip(function, **{argument: 7}) == expected


def test_annotations_that_cannot_be_checked_are_refused_with_the_reason() -> None:
    with pytest.raises(InvalidOption, match="annotations of task 'work' cannot be checked"):
        Signature(_take(Line | Struct | Model), "work")


@reproducible
@given(VALUES, st.integers(-SAFE_INTEGER, SAFE_INTEGER), TEXTS)
def test_plain_arguments_survive_whatever_they_are(anything: Any, number: int, text: str) -> None:
    def take(anything: Any, number: int, /, text: str) -> tuple[Any, ...]:
        return anything, number, text

    def take_flat(number: int, text: str) -> tuple[Any, ...]:
        return number, text

    assert trip(take, anything, number, text) == (anything, number, text)
    assert trip(take_flat, number, text=text) == (number, text)


def test_what_holds_itself_is_refused_in_words() -> None:
    def takes(to: str) -> None: ...

    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidPayload):
        Signature(takes, "takes").payload((circle,), {}, LIMIT)


def test_a_time_without_a_zone_is_no_argument() -> None:
    def takes(when: datetime) -> None: ...

    with pytest.raises(InvalidPayload, match=r"at \$.when, a time without a zone"):
        Signature(takes, "takes").payload((MOMENT.replace(tzinfo=None),), {}, LIMIT)
    with pytest.raises(InvalidPayload, match="timezone"):
        Signature(takes, "takes").check('{"when": "2026-01-01T00:00:00"}')


@pytest.mark.parametrize("hint", [Opaque, list[Opaque], dict[str, "Opaque | None"]])
def test_a_type_nobody_can_read_from_json_is_refused_where_it_is_declared(hint: Any) -> None:
    def takes(x: Any) -> None: ...

    takes.__annotations__["x"] = hint
    with pytest.raises(InvalidOption, match="Opaque"):
        Signature(takes, "takes")


def test_a_function_without_readable_parameters_is_refused() -> None:
    with pytest.raises(InvalidOption, match="cannot be read"):
        Signature(max, "max")


def test_an_argument_that_may_be_any_object_may_be_any_json() -> None:
    def takes(x: object) -> None: ...

    assert Signature(takes, "takes").payload(([1, {"a": None}],), {}, LIMIT) == '{"x":[1,{"a":null}]}'
