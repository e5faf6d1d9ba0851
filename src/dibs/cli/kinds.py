"""Kinds of values on the command line, each refused in the user's language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

from dibs.errors import DibsError
from dibs.messages import say


class Whole(click.ParamType[int]):
    """A whole number within bounds."""

    name = "number"

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number."""
        try:
            number = int(value)
        except ValueError:
            self.fail(say("kind.whole", value=value, least=self.least, most=self.most), param, ctx)
        if not self.least <= number <= self.most:
            self.fail(say("kind.whole", value=value, least=self.least, most=self.most), param, ctx)
        return number


class Span(click.ParamType[str]):
    """A duration: 90s, 15m, 2h, 1d, 1h30m, or seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a duration; the library reads it again."""
        from dibs.model.duration import seconds

        text = str(value)
        text = f"{text}s" if re.fullmatch(r"\d+(\.\d+)?", text) else text
        try:
            seconds(text)
        except DibsError:
            self.fail(say("kind.span", value=value), param, ctx)
        return text


class Moment(click.ParamType[datetime]):
    """A point in time: ISO 8601 with an offset, or followed by the name of a time zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read a point in time; one without a zone is an error with a page of its own."""
        from dibs.cli.problems import problem
        from dibs.errors import NaiveDatetime

        if isinstance(value, datetime):
            return value
        text, _, zone = str(value).strip().rstrip("]").replace("[", " ").partition(" ")
        if re.match(r"\d\d:\d\d", zone):  # a space instead of the T
            clock, _, zone = zone.partition(" ")
            text = f"{text}T{clock}"
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(say("kind.moment", value=value), param, ctx)
        if zone:
            moment = moment.replace(tzinfo=self._zone(zone, param, ctx))
        if moment.utcoffset() is None:
            raise problem(NaiveDatetime, "naive-time", value=value)
        return moment

    def _zone(self, name: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            self.fail(say("kind.zone", value=name), param, ctx)


class OneOf(click.Choice[str]):
    """One of some words."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__([str(word) for word in words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a word."""
        if str(value) not in self.choices:
            self.fail(say("kind.choice", value=value, words=", ".join(self.choices)), param, ctx)
        return str(value)


SPAN = Span()
MOMENT = Moment()
PRIORITY = Whole(-2_000_000_000, 2_000_000_000)
STATUS = OneOf(
    (
        "scheduled",
        "blocked",
        "ready",
        "claimed",
        "running",
        "retrying",
        "completed",
        "dead",
        "cancelled",
        "discarded",
    )
)
