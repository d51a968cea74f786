"""Work in parts: every part once, in order, whatever the threads do; errors are not lost."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from jigsync.measure.parts import THREADS, side_by_side, spans


@pytest.mark.parametrize("most", [1, 3, 8, 50])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 9, 25, 100, 333])
def test_parts_are_whole_even_and_short(count: int, most: int) -> None:
    parts = spans(count, most)
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(count))
    sizes = [part.stop - part.start for part in parts]
    assert all(0 < size <= most for size in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(parts) % THREADS == 0 or len(parts) == count


def test_answers_come_in_order() -> None:
    def late(k: int) -> int:
        time.sleep(0.02 * (3 - k % 4))
        return k

    assert side_by_side([partial(late, k) for k in range(8)]) == list(range(8))


def test_two_parts_run_at_once() -> None:
    met = threading.Barrier(THREADS, timeout=30)
    assert len(side_by_side([met.wait] * THREADS)) == THREADS  # one after the other they would never meet


@pytest.mark.parametrize("count", [1, 4])
def test_an_error_is_not_lost(count: int) -> None:
    def fails() -> None:
        raise ValueError("a part")

    with pytest.raises(ValueError, match="a part"):
        side_by_side([fails] * count)
