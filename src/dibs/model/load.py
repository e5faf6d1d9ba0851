"""How much one statement carries: a long batch is cut where it grows too heavy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

LOAD = 1_500_000
"""Characters of JSON in one statement. A server takes none that is longer than it has been told to, MariaDB by default
none of 16 MB; and a quote in a text in a JSON text in a statement takes eight bytes."""


def loads(sizes: Sequence[int], most: int) -> Iterator[slice]:
    """Where to cut a batch, given the size of each of its items: at most `most` items together, and at most `LOAD`.

    >>> list(loads([1, 1, LOAD, 1], 10)), list(loads([1, 1, 1], 2))
    ([slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)], [slice(0, 2, None), slice(2, 3, None)])
    """
    start = load = 0
    for end, size in enumerate(sizes):
        if end > start and (load + size > LOAD or end - start >= most):
            yield slice(start, end)
            start, load = end, 0
        load += size
    if sizes:
        yield slice(start, len(sizes))
