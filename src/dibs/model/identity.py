"""Job ids: UUIDv7, made by the client, so that a repeated enqueue after a lost answer is the same job."""

from __future__ import annotations

import random
import threading
import time
from functools import lru_cache
from uuid import UUID

from dibs.errors import InvalidOption

_lock = threading.Lock()
_chance = random.Random()
"""Seeded by the operating system. Asking it for each id would hand the interpreter to another thread each time."""
_last = 0
NIL = "00000000-0000-0000-0000-000000000000"


def new_id() -> str:
    """One new id; ids of one process ascend.

    >>> new_id() < new_id()
    True
    """
    number = _reserve(1)
    chance = f"{_chance.getrandbits(62) | _VARIANT:016x}"
    return f"{_prefix(number >> 12)}{_FRACTIONS[number & 4095]}{chance[:4]}-{chance[4:]}"


def new_ids(count: int) -> list[str]:
    """`count` new ids in ascending order: 48 bits of milliseconds, 12 of their fraction, 62 of chance."""
    first = _reserve(count)
    chances = bytearray(_chance.randbytes(8 * count))
    chances[::8] = chances[::8].translate(_VARIANTS)
    chance = chances.hex()
    return [
        f"{_prefix(number >> 12)}{_FRACTIONS[number & 4095]}{chance[at : at + 4]}-{chance[at + 4 : at + 16]}"
        for number, at in zip(range(first, first + count), range(0, 16 * count, 16), strict=True)
    ]


def _reserve(count: int) -> int:
    """The first of `count` numbers that nobody else gets: the time, or what follows the last one."""
    global _last
    stamp = time.time_ns() * 4096 // 1_000_000
    with _lock:
        first = max(stamp, _last + 1)
        _last = first + count - 1
    return first


def renew() -> None:
    """In a forked child: a thread that stayed with the parent may have held the lock, and chance must be another."""
    global _lock
    _lock = threading.Lock()
    _chance.seed()


_FRACTIONS = [f"-7{fraction:03x}-" for fraction in range(4096)]
_VARIANT = 1 << 63
_VARIANTS = bytes(128 | byte & 63 for byte in range(256))
"""What RFC 9562 wants at the head of the 62 bits of chance, for one id and for the first bytes of many."""


@lru_cache(maxsize=64)
def _prefix(milliseconds: int) -> str:
    text = f"{milliseconds:012x}"
    return f"{text[:8]}-{text[8:]}"


def check_id(value: object) -> str:
    """Return an id given by a user as canonical text."""
    try:
        return str(value if isinstance(value, UUID) else UUID(str(value)))
    except ValueError:
        raise InvalidOption(f"{value!r} is not a job id.", "Job ids are UUIDs.") from None
