"""Every error has its place in the tree that is drawn on top of the module, and survives a journey."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Iterator

import pytest

from dibs import errors
from dibs.errors import DibsError

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, DibsError)]


def _drawn() -> Iterator[tuple[str, str]]:
    """Each error of the drawing and the one above it."""
    above = ["DibsError"]
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^((?:│   |    )*)[├└]── (\w+)", line)
        if found:
            depth = len(found[1]) // 4 + 1
            del above[depth:]
            yield found[2], above[-1]
            above.append(found[2])


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    actual = {kind.__name__: base.__name__ for kind in KINDS for base in kind.__bases__ if issubclass(base, DibsError)}
    assert dict(_drawn()) == actual


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_crosses_to_another_process_with_all_it_knows(kind: type[DibsError]) -> None:
    error = kind("The cause.", "The remedy.", id="7", size=3)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.cause, copy.remedy, copy.data, str(copy)) == (error.cause, error.remedy, error.data, str(error))


def test_an_error_says_its_cause_and_then_its_remedy() -> None:
    assert str(errors.InvalidInput("It is wrong.", "Mend it.")) == "It is wrong. Mend it."
    assert str(errors.InvalidInput("It is wrong.")) == "It is wrong."


def test_a_remedy_that_is_given_replaces_the_usual_one() -> None:
    usual, special = errors.SchemaOutdated("Old."), errors.SchemaOutdated("Old.", "Ask somebody.")
    assert usual.remedy == errors.SchemaOutdated.default_remedy
    assert (special.remedy, str(special)) == ("Ask somebody.", "Old. Ask somebody.")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidInput, ValueError),
        (errors.NotFound, LookupError),
        (errors.UnknownTask, LookupError),
        (errors.ResultTimeout, TimeoutError),
        (errors.DatabaseUnreachable, ConnectionError),
        (errors.DriverMissing, ImportError),
        (errors.InvalidURL, ValueError),
    ],
)
def test_who_catches_the_builtin_error_catches_ours(kind: type[DibsError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin, match="cause"):
        raise kind("The cause.")
