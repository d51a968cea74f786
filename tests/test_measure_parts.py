"""Work in parts: every part once, in order, whatever the threads do; errors are not lost."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np
import pytest

import jigsync
from jigsync.data import picture
from jigsync.measure import registry
from jigsync.measure.learned import Learned
from jigsync.measure.parts import EVEN, side_by_side, spans, using_threads
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle


@pytest.mark.parametrize("most", [1, 3, 8, 50])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 9, 25, 100, 333])
def test_parts_are_whole_even_and_short(count: int, most: int) -> None:
    parts = spans(count, most)
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(count))
    sizes = [part.stop - part.start for part in parts]
    assert all(0 < size <= most for size in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(parts) % EVEN == 0 or len(parts) == count


def test_answers_come_in_order() -> None:
    def late(k: int) -> int:
        time.sleep(0.02 * (3 - k % 4))
        return k

    assert side_by_side([partial(late, k) for k in range(8)]) == list(range(8))


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_as_many_parts_run_at_once_as_there_are_threads(threads: int) -> None:
    met = threading.Barrier(threads, timeout=30)
    with using_threads(threads):
        assert len(side_by_side([met.wait] * threads)) == threads  # fewer at once would never meet


def test_one_thread_runs_parts_itself() -> None:
    with using_threads(1):
        assert side_by_side([threading.get_ident] * 4) == [threading.get_ident()] * 4


def test_threads_are_said_for_a_block_and_its_thread_only() -> None:
    others: list[set[int]] = []

    def elsewhere() -> None:
        met = threading.Barrier(EVEN, timeout=30)
        others.append(set(side_by_side([met.wait] * EVEN)))

    with using_threads(1):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with using_threads(3):
            pass
        assert side_by_side([threading.get_ident] * 2) == [threading.get_ident()] * 2
    assert others == [{0, 1}]


def test_what_is_measured_knows_no_threads() -> None:
    puzzle = jigsync.cut(picture("coffee"), 4, "severe", cell=48, seed=3)
    with using_threads(1):
        one = Learned().measure(puzzle)
    assert not one.note
    for threads in (2, 4):
        with using_threads(threads):
            other = Learned().measure(puzzle)
        np.testing.assert_array_equal(other.sides().to_dense(), one.sides().to_dense())
        np.testing.assert_array_equal(other.border, one.border)
        np.testing.assert_array_equal(other.reach, one.reach)


def test_a_solve_measures_with_the_threads_it_is_given() -> None:
    seen: list[int] = []

    class Asks:
        name = "asks"

        def measure(self, puzzle: Puzzle) -> Measurements:
            met = threading.Barrier(3, timeout=30)
            seen.append(len(side_by_side([met.wait] * 3)))
            return registry.get("seam").measure(puzzle)

    puzzle = jigsync.cut(picture("coffee"), 2, "clean", cell=32)
    assert jigsync.solve(puzzle, measurer=Asks(), threads=3)
    assert seen == [3]


@pytest.mark.parametrize("count", [1, 4])
def test_an_error_is_not_lost(count: int) -> None:
    def fails() -> None:
        raise ValueError("a part")

    with pytest.raises(ValueError, match="a part"):
        side_by_side([fails] * count)
