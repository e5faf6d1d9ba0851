"""What must be reached: every bar of `python -m bench`, by kind of database. A figure that is not named has none."""

from __future__ import annotations

from bench.core.result import Bar


def _at_least(value: float) -> Bar:
    return Bar("at least", value)


def _at_most(value: float) -> Bar:
    return Bar("at most", value)


BARS: dict[str, dict[str, Bar]] = {
    "postgres": {
        "drain_async_1, ratio": _at_least(0.85),
        "drain_async_1, client µs": _at_most(12),
        "drain_async_2, ratio": _at_least(0.85),
        "drain_async_2, client µs": _at_most(12),
        "drain_sync_1, ratio": _at_least(0.5),
        "pinned": _at_least(0.85),
        "backlog_million": _at_least(0.85),
        "scheduled_above": _at_least(0.85),
        "enqueue_single, ratio": _at_least(0.75),
        "enqueue_ten, ratio": _at_least(0.6),
        "enqueue_bulk, ratio": _at_least(0.6),
        "pickup, p50": _at_most(3),
        "pickup, p99": _at_most(15),
        "memory, largest": _at_most(90),
        "memory, growth": _at_most(3),
    },
    # MySQL and MariaDB: the same for both.
    "mysql": {
        "drain_async_1, ratio": _at_least(0.6),
        "pinned": _at_least(0.8),
        "backlog_million": _at_least(0.8),
        "enqueue_single, ratio": _at_least(0.7),
        "enqueue_bulk, ratio": _at_least(0.5),
        "pickup, p50": _at_most(25),
        "idle, statements": _at_most(40),
    },
    "sqlite": {
        "drain, ratio": _at_least(0.4),
        "drain, rate": _at_least(15_000),
        "pickup, p50": _at_most(10),
    },
    "none": {
        "help": _at_most(150),
    },
}


def bar(kind: str, figure: str) -> Bar | None:
    """What a figure must reach on a kind of database, None if nothing."""
    return BARS[kind].get(figure)
