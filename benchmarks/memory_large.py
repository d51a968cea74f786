"""Seconds and memory of measuring a large puzzle of flush squares, in memory.

python benchmarks/memory_large.py [--grid 59x85] [--cell 28] [--solve]

An (N, N, 192) array of 5015 fragments would be 19 GB, all 16 N^2 pairs of sides 1.6 GB a cost.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.data import names, picture
from jigsync.io.images import read_rgb
from jigsync.measure import registry
from jigsync.score.touching import touching
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores


def peak() -> str:
    """The most memory this process has held so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:5.2f} GB"


def lap() -> Callable[[], str]:
    """A clock that is read by calling it: seconds, and seconds of all cores together."""
    wall, cpu = time.perf_counter(), time.process_time()
    return lambda: f"in {time.perf_counter() - wall:6.1f} s ({time.process_time() - cpu:.1f} s of CPU)   peak {peak()}"


def share_on_top(scores: SideScores, partner: np.ndarray) -> float:
    """Share of the sides with a neighbour whose best score is that neighbour's."""
    assert scores.indptr is not None
    assert scores.indices is not None
    assert scores.values is not None
    right = [
        scores.indices[begin + int(np.argmax(scores.values[begin:end]))] == true
        for begin, end, true in zip(scores.indptr[:-1], scores.indptr[1:], partner, strict=True)
        if true >= 0 and end > begin
    ]
    return sum(right) / int(np.sum(partner >= 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--grid", type=Grid.parse, default=Grid(59, 85), help="rows x cols")
    parser.add_argument("--cell", type=int, default=28, help="pixels")
    parser.add_argument("--picture", choices=names(), default="coffee", help="bundled picture, enlarged as needed")
    parser.add_argument("--measurer", choices=registry.names(), default=registry.DEFAULT)
    parser.add_argument("--severity", choices=list(SEVERITIES), default="clean")
    parser.add_argument("--solve", action="store_true", help="solve it too, with the grid known")
    options = parser.parse_args()
    grid: Grid = options.grid

    cut = CutOptions(grid, options.cell, SEVERITIES[options.severity])
    puzzle, truth = cut_picture(read_rgb(picture(options.picture)), cut)
    held = sum(pixels.nbytes for pixels in puzzle.fragments.pixels) / 2**30
    print(f"{len(puzzle)} fragments of {options.cell} px   peak {peak()}, the pixels are {held:.2f} GB", flush=True)

    clock = lap()
    measurements = registry.get(options.measurer).measure(puzzle)
    print(f"measured {clock()}", flush=True)
    clock = lap()
    scores = measurements.sides()
    print(f"scored   {clock()}", flush=True)
    if scores.values is not None:
        on_top = share_on_top(scores, touching(truth.placement, puzzle.ids))
        print(f"{len(scores.values):,} scores listed; the true neighbour is on top for {on_top:.1%} of the sides")
    if options.solve:
        from jigsync.engine.search import solve_map

        clock = lap()
        found = solve_map(scores, grid)
        print(f"solved   {clock()}, score {found.score:.1f}")


if __name__ == "__main__":
    main()
