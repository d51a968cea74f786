"""Work in parts, side by side on as many threads as the caller has said.

    with using_threads(4):
        measurements = measurer.measure(puzzle)

A context variable says how many, so that a measurer's signature does not: measurers from elsewhere need not know of
threads, and those in here hand the number to nobody. Parts do not depend on it, and so neither do answers.

Networks run on parts side by side, one thread each, take less time than with threads that share every layer and may not
spin while they wait, which would take the cores from the workers of an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

Part = TypeVar("Part")

EVEN: Final = 2
"""Parts come in multiples of this many, whatever the number of threads."""
_THREADS: ContextVar[int] = ContextVar("threads", default=2)


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Within, `side_by_side` runs so many parts at once."""
    before = _THREADS.set(count)
    try:
        yield
    finally:
        _THREADS.reset(before)


def spans(count: int, most: int) -> list[slice]:
    """0 .. count in parts of about the same length, at most `most`, a multiple of EVEN of them where they suffice."""
    parts = min(count, EVEN * -(-count // (EVEN * most)))
    return [slice(count * k // parts, count * (k + 1) // parts) for k in range(parts)]


def side_by_side(calls: Sequence[Callable[[], Part]]) -> list[Part]:
    """What the calls return, in their order; the first error of one of them."""
    threads = min(_THREADS.get(), len(calls))
    if threads < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda call: call(), calls))
