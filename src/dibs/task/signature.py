"""From a function's annotations to a checked JSON payload, and back to its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, cast, get_type_hints

import msgspec

from dibs.errors import InvalidOption, InvalidPayload
from dibs.model.job import Job
from dibs.model.json_text import SAFE_INTEGER, encode, encode_plain

_Integer = Annotated[int, msgspec.Meta(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]
_STRICTER: dict[Any, Any] = {int: _Integer, datetime: Annotated[datetime, msgspec.Meta(tz=True)], object: Any}
"""What an annotation means here: no integer others round, no time without a zone, and any JSON for `object`."""
_FLAT = (int, str, bool)
"""Types whose values need no search for what JSON cannot keep: the decoder checks them as it reads."""
_MISFITS = (TypeError, ValueError, msgspec.MsgspecError, NotImplementedError, OverflowError, RecursionError)
_FIXED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """The parameters of a handler, stored by name, checked against their annotations when enqueued and when run.

    A parameter annotated `Job`, or one called `job` without annotation, is not an argument: the worker passes the
    claimed job there. A handler that has no other parameter takes any payload.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self._what = f"payload of {name!r}"
        parameters = _parameters(function, name)
        hints = _hints(function)
        self.job_parameter = next((p.name for p in parameters if _wants_job(p, hints)), None)
        self.open = any(p.kind is p.VAR_KEYWORD for p in parameters)
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            raise InvalidOption(
                f"Task {name!r} takes *args, but arguments are stored by name.", "Give each parameter a name."
            )
        fields = [p for p in parameters if p.name != self.job_parameter and p.kind is not p.VAR_KEYWORD]
        self._positional = tuple(p.name for p in fields if p.kind in _FIXED)
        self._keywords = tuple(p.name for p in fields if p.kind not in _FIXED)
        self._fields = frozenset(p.name for p in fields)
        flat = bool(fields) and all(hints.get(p.name) in _FLAT for p in fields) and not self.open
        self._all = msgspec.defstruct("All", self._positional) if flat and not self._keywords else None
        """What binds arguments in C, if all are given."""
        self._types = tuple(hints.get(name) for name in self._positional)
        self._bounded = int in self._types
        self._decoder = _decoder(name, fields, hints, self.open)
        self._unpack = _getter(self._positional)
        self._order = tuple(p.name for p in parameters if p.kind in _FIXED)
        self._direct = not (self._keywords or self.open or self.job_parameter)
        self._whole = bool(self.job_parameter) and not fields and not self.open

    def payload(self, args: tuple[Any, ...], kwargs: dict[str, Any], limit: int) -> str:
        """The call's arguments as JSON, or `InvalidPayload` naming the argument that does not fit."""
        if self._all is not None:
            exact = not kwargs and tuple(map(type, args)) == self._types
            try:
                text = encode_plain(self._all(*args, **kwargs), () if exact else (*args, *kwargs.values()), limit)
                if text is not None:
                    if self._bounded or not exact:
                        self._decoder(text)
                    return text.decode()
            except _MISFITS:
                return self._carefully(args, kwargs, limit)  # which says what does not fit
        return self._carefully(args, kwargs, limit)

    def _carefully(self, args: tuple[Any, ...], kwargs: dict[str, Any], limit: int) -> str:
        if len(args) > len(self._positional):
            raise InvalidPayload(
                f"Task {self.name!r} takes {len(self._positional)} positional arguments, {len(args)} were given."
            )
        named = dict(zip(self._positional, args, strict=False))
        for name, value in kwargs.items():
            if name in named or (name not in self._fields and not (self.open or self._whole)):
                problem = "given twice" if name in named else "unknown"
                raise InvalidPayload(f"Argument {name!r} of task {self.name!r} is {problem}.")
            named[name] = value
        text = encode(named, self._what, limit)
        self.check(text)
        return text.decode()

    def check(self, text: bytes | str) -> Any:
        """Decode a payload by the annotations."""
        if self._whole:
            return None
        try:
            return self._decoder(text)
        except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
            raise InvalidPayload(
                f"The payload does not fit task {self.name!r}: {error}.",
                "Compare it with the task's parameters.",
            ) from error

    def call(self, function: Callable[..., Any], job: Job) -> Any:
        """Call the handler with the arguments of a job; for an `async def` handler this makes the coroutine."""
        arguments = self.check(job.row[2])
        if self._direct:
            return function(*self._unpack(arguments))
        named = {name: getattr(arguments, name) for name in self._fields}
        if self.open:
            named = {**job.payload, **named}
        if self.job_parameter is not None:
            named[self.job_parameter] = job
        ordered = [named.pop(name) for name in self._order]
        return function(*ordered, **named)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise InvalidOption(
            f"The parameters of task {name!r} cannot be read: {error}.", "Wrap it in a function of your own."
        ) from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        # An annotation that only a type checker can resolve: such arguments are taken as plain JSON.
        return {}


def _wants_job(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    if parameter.name in hints:
        return hints[parameter.name] is Job
    if isinstance(parameter.annotation, str):  # which only a type checker can resolve
        return parameter.annotation.rpartition(".")[2] == "Job"
    return parameter.name == "job" and parameter.annotation is inspect.Parameter.empty


def _decoder(
    name: str, fields: list[inspect.Parameter], hints: dict[str, Any], open_ended: bool
) -> Callable[[bytes | str], Any]:
    """A msgspec decoder for a struct with one field for each parameter."""
    shape = [_field(parameter, hints.get(parameter.name, Any)) for parameter in fields]
    try:
        struct = msgspec.defstruct("Arguments", shape, kw_only=True, forbid_unknown_fields=not open_ended)
        for foreign in _foreign(msgspec.inspect.type_info(struct)):
            _validator(foreign)
        return msgspec.json.Decoder(struct, dec_hook=_decode_foreign).decode
    except (TypeError, NotImplementedError) as error:
        raise InvalidOption(f"The annotations of task {name!r} cannot be checked: {error}.") from error


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    hint = _STRICTER.get(hint, hint) if isinstance(hint, type) else hint
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, hint
    default = parameter.default
    return parameter.name, hint, msgspec.field(default_factory=lambda: default)


def _decode_foreign(kind: type, value: Any) -> Any:
    """Types msgspec does not know: pydantic models validate themselves."""
    return _validator(kind)(value)


def _validator(kind: type) -> Callable[[Any], Any]:
    validate: Any = getattr(kind, "model_validate", None)
    if not callable(validate):
        raise NotImplementedError(f"{kind.__name__} is no type dibs can read from JSON")
    return cast("Callable[[Any], Any]", validate)


def _foreign(found: Any) -> Iterator[type]:
    """The types inside a type that msgspec leaves to a hook."""
    if isinstance(found, msgspec.inspect.CustomType):
        yield found.cls
    if isinstance(found, (list, tuple)):
        parts = found
    elif isinstance(found, (msgspec.inspect.Type, msgspec.inspect.Field)):
        parts = [getattr(found, name) for name in found.__struct_fields__]
    else:
        return
    for part in parts:
        yield from _foreign(part)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    if len(names) == 1:
        return lambda arguments: (get(arguments),)
    return get
