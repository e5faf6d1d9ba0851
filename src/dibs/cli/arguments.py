"""Arguments of a task on the command line: `key=text` and `key:=json`."""

from __future__ import annotations

import json
import typing
from collections.abc import Sequence
from typing import Any

from dibs.cli.problems import problem
from dibs.errors import InvalidPayload
from dibs.task.registry import Definition


def payload(words: Sequence[str], definition: Definition | None) -> dict[str, Any]:
    """The payload that the words spell.

    `key=text` is text, unless the task wants something else there: then it is read as JSON if it is any, so that
    `count=3` reaches a parameter annotated int as a number. `key:=json` is JSON whatever the task wants.
    """
    wanted = _annotations(definition)
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.rstrip(":"):
            raise problem(InvalidPayload, "bad-argument", word=word)
        if name.endswith(":"):
            values[name[:-1]] = _json(word, text)
        else:
            values[name] = text if _takes_text(wanted.get(name, str)) else _json_or_text(text)
    return values


def _annotations(definition: Definition | None) -> dict[str, Any]:
    if definition is None:
        return {}
    try:
        return typing.get_type_hints(definition.function)
    except (NameError, TypeError):
        # Annotations that only a type checker can resolve: the values are taken as text.
        return {}


def _takes_text(annotation: Any) -> bool:
    return annotation in (str, Any) or str in typing.get_args(annotation)


def _json(word: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise problem(InvalidPayload, "bad-json", word=word, error=error) from error


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
