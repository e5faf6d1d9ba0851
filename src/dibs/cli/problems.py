"""Errors as a person at a terminal sees them: a cause, a remedy, a code with a page, and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from dibs import errors
from dibs.errors import DibsError
from dibs.messages import knows, language, say

if TYPE_CHECKING:
    import click

E = TypeVar("E", bound=DibsError)

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, UNREACHABLE, SCHEMA, PARTLY, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130

_EXITS: tuple[tuple[type[DibsError], int], ...] = (
    (errors.InvalidInput, USAGE),
    (errors.InvalidURL, USAGE),
    (errors.NotFound, NOT_FOUND),
    (errors.UnknownTask, NOT_FOUND),
    (errors.AppNotFound, NOT_FOUND),
    (errors.Conflict, CONFLICT),
    (errors.DatabaseUnreachable, UNREACHABLE),
    (errors.DatabaseMissing, UNREACHABLE),
    (errors.DriverMissing, UNREACHABLE),
    (errors.SchemaOutdated, SCHEMA),
    (errors.SchemaTooNew, SCHEMA),
)
"""The exit code of each kind of error; every other one is 1."""


def problem(kind: type[E], code: str, **values: object) -> E:
    """An error of the command line itself, told in the user's language by the catalogue's `error.<code>` texts."""
    cause, remedy = say(f"error.{code}.cause", **values), say(f"error.{code}.remedy", **values)
    return kind(cause, remedy, code=code, told=True, **{name: str(value) for name, value in values.items()})


def code_of(error: DibsError) -> str:
    """The code of an error: the name of its page in docs/errors.md."""
    return str(error.data.get("code") or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__).lower())


def exit_code(error: DibsError) -> int:
    """The exit code of an error."""
    return next((code for kind, code in _EXITS if isinstance(error, kind)), FAILED)


def words(error: DibsError) -> tuple[str, str]:
    """Cause and remedy in the user's language. The library itself speaks English: its words are then the detail."""
    code = code_of(error)
    if error.data.get("told") or language() == "en" or not knows(f"error.{code}.cause"):
        return error.cause, error.remedy
    return f"{say(f'error.{code}.cause')}（{error.cause}）", say(f"error.{code}.remedy")


def tell(error: DibsError, debug: bool = False) -> int:
    """Print an error to standard error; answers its exit code."""
    from dibs.cli.output import complain
    from dibs.cli.plainer import plainer

    plain = plainer(error)
    complain(*words(plain), code_of(plain))
    if debug:
        _show_traceback(error)
    return exit_code(error)


def tell_usage(error: click.UsageError) -> int:
    """Print a mistake in the command line itself."""
    from dibs.cli.output import complain

    path = error.ctx.command_path if error.ctx else "dibs"
    complain(_usage_words(error), say("usage.try", command=path), "usage")
    return USAGE


def tell_unexpected(error: BaseException, debug: bool) -> None:
    """Print what should never happen: a bug of dibs."""
    from dibs.cli.output import complain

    shown = f"{type(error).__name__}: {error}".rstrip(".")
    complain(say("error.unexpected.cause", error=shown), say("error.unexpected.remedy"), "unexpected")
    if debug:
        _show_traceback(error)


def _usage_words(error: click.UsageError) -> str:
    import click

    from dibs.cli.grammar import UnknownCommand

    if isinstance(error, UnknownCommand):
        if error.later:
            return say("usage.later", name=error.name)
        return say("usage.no_command", name=error.name) + _near(error.name, error.known)
    if isinstance(error, click.NoSuchOption):
        known = [name for item in error.ctx.command.params for name in item.opts] if error.ctx else []
        return say("usage.no_option", name=error.option_name) + _near(error.option_name, known)
    if isinstance(error, click.MissingParameter):
        name = error.param.make_metavar(error.ctx) if error.param and error.ctx else ""
        option = error.param.opts[0] if error.param and error.param.opts[0].startswith("-") else name
        return say("usage.missing", name=option)
    if isinstance(error, click.BadParameter):
        name = " / ".join(error.param.opts) if error.param else ""
        return say("usage.bad_value", name=name, problem=error.message)
    if isinstance(error, click.BadOptionUsage):
        return say("usage.bad_option", name=error.option_name)
    return error.format_message() if language() == "en" else say("usage.general", problem=error.format_message())


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names that a mistyped one may have meant, the likeliest first."""
    import difflib

    return difflib.get_close_matches(name, known, 3, 0.5)


def _near(name: str, known: list[str]) -> str:
    close = nearest(name, known)
    return " " + say("usage.nearest", names=", ".join(close)) if close else ""


def _show_traceback(error: BaseException) -> None:
    import traceback

    sys.stderr.write("".join(traceback.format_exception(error)))
