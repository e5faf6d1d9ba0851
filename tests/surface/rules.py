"""Which room may import which: the one place that says so, for the test and for docs/architecture.md."""

from __future__ import annotations

ARROWS: dict[str, tuple[str, ...]] = {
    "errors": (),
    "messages": (),
    "model": ("errors",),
    "task": ("errors", "model"),
    "store": ("errors", "model"),
    "worker": ("errors", "model", "task", "store"),
    "door": ("errors", "model", "task", "store"),
    "cli": ("errors", "messages", "model", "task", "store", "door", "worker", "__init__"),
    "__init__": ("errors", "model", "door", "worker"),
    "__main__": ("cli",),
}
"""Room -> rooms it may import. docs/architecture.md is made from it."""
