"""Settings of a queue as `dibs queue set` takes them: 5m, exponential:1s:2:0.2, dead=90d."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.messages import say

if TYPE_CHECKING:
    from dibs.model.backoff import Backoff
    from dibs.model.settings import QueueSettings

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


def spelled(settings: QueueSettings) -> dict[str, str]:
    """Every setting of a queue that somebody has set."""
    shown = {name: _value(value) for name, value in settings._asdict().items() if value is not None}
    return {name: text for name, text in shown.items() if text}


def effective(settings: QueueSettings) -> dict[str, str]:
    """Every setting of a queue, with the defaults where nothing is set."""
    from dibs.model.backoff import DEFAULT_BACKOFF
    from dibs.model.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES
    from dibs.model.settings import DEFAULT_LEASE, DEFAULT_RETENTION, DEFAULT_TIMEOUT, QueueSettings

    defaults = QueueSettings(
        DEFAULT_LEASE, DEFAULT_TIMEOUT, DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES, DEFAULT_BACKOFF, DEFAULT_RETENTION
    )
    kept = settings._replace(retention=settings.retention and {**DEFAULT_RETENTION, **settings.retention})
    own, usual = spelled(kept), spelled(defaults)
    return {name: own.get(name) or say("queue.default", value=text) for name, text in usual.items()}


def exact(seconds: float) -> str:
    """A span of time, to the millisecond, as it may be written back.

    >>> exact(300), exact(5_400), exact(0.25), exact(0)
    ('5m', '1h30m', '250ms', '0s')
    """
    left, parts = round(seconds * 1_000), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def backoff_text(backoff: Backoff) -> str:
    """A backoff as `--backoff` takes it.

    >>> from dibs import Backoff
    >>> backoff_text(Backoff.exponential()), backoff_text(Backoff.polynomial(2, "1m")), backoff_text(Backoff.none())
    ('exponential:1s:2:0.2', 'polynomial:2:1m', 'none')
    """
    unit, factor = exact(backoff.unit), f"{backoff.factor:g}"
    shapes = {
        "none": "none",
        "fixed": f"fixed:{unit}",
        "polynomial": f"polynomial:{factor}:{unit}",
        "exponential": f"exponential:{unit}:{factor}:{backoff.jitter:g}",
    }
    return shapes[backoff.shape]


def _value(value: object) -> str:
    from dibs.model.backoff import Backoff

    if isinstance(value, Backoff):
        return backoff_text(value)
    if isinstance(value, dict):
        return " ".join(f"{name}={'keep' if span is None else exact(span)}" for name, span in value.items())
    return exact(value) if isinstance(value, float) else str(value)
