"""Times the whole synchronization of 10 000 fragments with 20 edges each, a fifth of them wrong.

python benchmarks/sync_speed.py [--truncated]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from jigsync.studies.synthetic import random_solved, turn_evidence
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.pipeline import synchronize
from jigsync.values.layout import Grid
from jigsync.values.listing import Listing
from jigsync.values.measurements import Measurements

GRID = Grid(80, 125)
DEGREE = 20
WRONG = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truncated", action="store_true", help="truncated instead of plain least squares")
    options = DecodeOptions(symmetrized=True, truncated=parser.parse_args().truncated)
    rng = np.random.default_rng(0)
    solved = random_solved(GRID, rng)
    at = np.argsort(solved.slots).reshape(GRID.shape)
    first, second = [], []
    for d_row, d_col in [(r, c) for r in range(3) for c in range(-2, 3) if (r, c) > (0, 0)]:
        left, right = max(0, -d_col), max(0, d_col)
        first.append(at[: GRID.rows - d_row, left : GRID.cols - right].ravel())
        second.append(at[d_row:, right : GRID.cols - left].ravel())
    i, j = np.concatenate(first), np.concatenate(second)
    keep = rng.permutation(len(i))[: DEGREE * GRID.size // 2]
    i, j = i[keep], j[keep]
    relation = solved.relation(i, j)
    wrong = rng.random(len(i)) < WRONG
    relation[wrong] = rng.integers(0, 96, int(wrong.sum()))
    measurements = Measurements(
        solved.ids,
        Listing.of(GRID.size, i, j, relation, np.full(len(i), np.log(0.9))),
        unary_turns=turn_evidence(solved, rng, 0.5),
    )
    wall, cpu = time.perf_counter(), time.process_time()
    result = synchronize(measurements, GRID, options)
    print(
        f"{GRID.size} fragments, {2 * len(i) / GRID.size:.1f} edges each:"
        f" {time.perf_counter() - wall:.1f} s ({time.process_time() - cpu:.1f} s of CPU),"
        f" turns right {np.mean(result.turns == solved.turns):.4f},"
        f" slots right {np.mean(result.slots == solved.slots):.4f}"
    )


if __name__ == "__main__":
    main()
