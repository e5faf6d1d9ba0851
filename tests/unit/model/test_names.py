"""Names and keys that people choose."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import InvalidName, InvalidOption
from dibs.model.names import check_key, check_name, check_priority
from tests.unit.fakes import reproducible

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
STRANGE = st.characters(exclude_characters=LETTERS)


@reproducible
@given(st.text(LETTERS, min_size=1, max_size=63))
def test_every_name_of_the_allowed_letters_is_kept(name: str) -> None:
    assert check_name("queue", name) == name


@reproducible
@given(st.text(LETTERS, max_size=30), STRANGE, st.text(LETTERS, max_size=30))
def test_one_foreign_letter_anywhere_spoils_a_name(before: str, letter: str, after: str) -> None:
    with pytest.raises(InvalidName):
        check_name("queue", before + letter + after)


@pytest.mark.parametrize("name", ["", "mail\n", "\nmail", "mail ", "ｍail", "маil", "mail\u0301", "٣", "a" * 64])
def test_a_name_that_only_looks_allowed_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="cannot be a task name") as raised:
        check_name("task", name)
    assert raised.value.data == {"name": name}


def test_a_name_may_be_of_a_subclass_of_text() -> None:
    class Name(str):
        __slots__ = ()

    assert check_name("queue", Name("mail")) == "mail"


@pytest.mark.parametrize("key", ["x", "x" * 191, "\U0001f4ee" * 191, " ", "\n", "'; drop table job", "é\u0301"])
def test_a_key_may_be_any_text_of_its_length(key: str) -> None:
    assert check_key("unique", key) == key


def test_no_key_is_no_mistake() -> None:
    assert check_key("unique", None) is None


@pytest.mark.parametrize("key", ["", "x" * 192, 0, False, b"x", ["x"]])
def test_a_key_of_another_kind_or_length_is_refused(key: Any) -> None:
    with pytest.raises(InvalidOption, match="1 to 191 characters"):
        check_key("unique", key)


@pytest.mark.parametrize("key", ["\x00", "a\x00", "\ud800", "a\udfffb"])
def test_a_key_that_no_database_could_keep_is_refused(key: str) -> None:
    with pytest.raises(InvalidOption, match="NUL or half of a surrogate pair"):
        check_key("unique", key)


@pytest.mark.parametrize("priority", [0, -1, 2_000_000_000, -2_000_000_000])
def test_a_priority_may_touch_its_bounds(priority: int) -> None:
    assert check_priority(priority) == priority


@pytest.mark.parametrize("priority", [2_000_000_001, -2_000_000_001, 1.0, "1", True, None])
def test_a_priority_of_another_kind_or_size_is_refused(priority: Any) -> None:
    with pytest.raises(InvalidOption, match="whole number"):
        check_priority(priority)


def test_a_priority_of_an_enum_becomes_a_plain_number() -> None:
    class Urgency(IntEnum):
        HIGH = 9

    assert type(check_priority(Urgency.HIGH)) is int
