"""JSON in and out. What cannot survive the trip through every database is refused before it is stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dibs.errors import InvalidPayload, PayloadTooLarge

DEPTH_LIMIT = 64
SAFE_INTEGER = 2**53
_NUL = b"\\u0000"
_TIME = re.compile(rb"\dT\d\d:\d\d")
_LONG_NUMBER = re.compile(rb"[1-9]\d{15}")

decode = msgspec.json.Decoder().decode
"""Read JSON text or bytes."""


def _pydantic_or_refuse(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise NotImplementedError(f"{type(value).__name__} is not JSON")


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=_pydantic_or_refuse).encode

write: Callable[[Any], bytes] = msgspec.json.Encoder().encode
"""Write what has been checked before, or is dibs' own: ids, names, numbers, texts."""


def encode(value: Any, what: str = "payload", limit: int | None = None) -> bytes:
    """Write JSON, or raise `InvalidPayload` (`PayloadTooLarge`) naming the place that cannot be kept."""
    try:
        text = _encode(value)
    except (NotImplementedError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidPayload(
            f"The {what} cannot be written as JSON: {error}.",
            "Use numbers, text, lists and dicts, or types dibs knows (datetime, UUID, Decimal, dataclass, ...).",
        ) from error
    if limit is not None:
        text = _compact(text, what)
    if limit is not None and len(text) > limit:
        raise PayloadTooLarge(f"The {what} has {len(text):,} bytes, the limit is {limit:,}.", size=len(text))
    if _suspect(text):
        # As it is, where NaN still is NaN, and as it will be read.
        _inspect(msgspec.to_builtins(value, builtin_types=(datetime,), enc_hook=_plain), what, "$", 0)
        _inspect(decode(text), what, "$", 0)
    return text


def encode_plain(value: Any, parts: tuple[Any, ...], limit: int) -> bytes | None:
    """`encode` for a few plain `parts` whose types are about to be checked; None where a closer look is due."""
    text = _encode(value)
    if len(text) > limit or text.find(_NUL) >= 0 or (parts and msgspec.Raw in map(type, parts)):
        return None
    return text


def _compact(text: bytes, what: str) -> bytes:
    """One line of JSON. It is one already, but for `msgspec.Raw`, which may bring in anything, JSON or not."""
    try:
        if not text.isascii():
            text.decode()
        return msgspec.json.format(text, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidPayload(f"The {what} holds a msgspec.Raw that is no JSON: {error}.") from error


def _plain(value: Any) -> Any:
    return decode(value) if isinstance(value, msgspec.Raw) else _pydantic_or_refuse(value)


def _suspect(text: bytes) -> bool:
    """Whether a close look is due: cheap signs of what `_inspect` refuses (NaN is written as null)."""
    return (
        b"null" in text
        or _NUL in text
        or text.count(b"[") + text.count(b"{") > DEPTH_LIMIT
        or _LONG_NUMBER.search(text) is not None
        or _TIME.search(text) is not None
    )


def _inspect(value: Any, what: str, path: str, depth: int) -> None:
    """Find NaN, infinities, NUL, integers no other language can read, times without a zone, and bottomless nesting."""
    if depth > DEPTH_LIMIT:
        raise InvalidPayload(f"The {what} is nested more than {DEPTH_LIMIT} deep.", "Flatten it.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidPayload(f"The {what} has {value} at {path}, which JSON cannot hold.", "Use None.")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > SAFE_INTEGER:
        raise InvalidPayload(
            f"The {what} has the integer {value} at {path}: beyond 2^53 other readers of JSON round it.",
            "Pass it as text.",
        )
    if isinstance(value, datetime) and value.tzinfo is None:
        raise InvalidPayload(
            f"The {what} has {value} at {path}, a time without a zone: it could mean any of 38 instants.",
            "Give it one, for example datetime.now(UTC).",
        )
    if isinstance(value, str) and "\x00" in value:
        raise InvalidPayload(f"The {what} has a NUL character at {path}, which databases refuse.", "Remove it.")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _inspect(key, what, path, depth)
            _inspect(item, what, f"{path}.{key}", depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            _inspect(item, what, f"{path}[{index}]", depth + 1)


def clean(text: str, limit: int) -> str:
    """Make foreign text (an error message, a traceback) storable everywhere, at most `limit` characters."""
    safe = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"
