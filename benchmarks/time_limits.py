"""How well a solve keeps its time limit, whatever the shape of the grid.

    python benchmarks/time_limits.py [--limits 2,5] [--grids 40x50,1x2000,2x997,1x4000]

Fragments with one true partner a side, five false ones, and noise: hard enough that every limit strikes. Printed are
the seconds of the search, of the draws that tell how sure it is, and the most memory that the process has held.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from jigsync.engine.search import solve_map
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

FALSE = 5
"""Listed partners of a side that are wrong."""


def planted(grid: Grid, rng: np.random.Generator) -> SideScores:
    """Sparse scores of a grid's fragments, shuffled and turned."""
    n, slots = grid.size, np.arange(grid.size).reshape(grid.shape)
    order, turns = rng.permutation(n), rng.integers(0, z4.ORDER, n)
    pairs = []
    for bearing, near, far in ((z4.E, slots[:, :-1], slots[:, 1:]), (z4.S, slots[:-1], slots[1:])):
        i, j = order[near.ravel()], order[far.ravel()]
        pairs.append((4 * i + (bearing - turns[i]) % 4, 4 * j + (bearing + 2 - turns[j]) % 4, rng.normal(3, 3, len(i))))
    s, t = rng.integers(0, 4 * n, (2, FALSE * 4 * n))
    pairs.append((s, t, rng.normal(-1, 2.5, len(s))))
    s, t, value = (np.concatenate(column) for column in zip(*pairs, strict=True))
    key, first = np.unique(np.minimum(s, t) * 4 * n + np.maximum(s, t), return_index=True)
    s, t, value = key // (4 * n), key % (4 * n), value[first]
    apart = s // 4 != t // 4
    s, t, value = s[apart], t[apart], value[apart].astype(np.float32)
    s, t, value = np.concatenate([s, t]), np.concatenate([t, s]), np.concatenate([value, value])
    rows = np.lexsort([t, s])
    indptr = np.searchsorted(s[rows], np.arange(4 * n + 1)).astype(np.int64)
    return SideScores(n, None, indptr, t[rows].astype(np.int32), value[rows], -6.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--limits", default="2,5", help="seconds")
    parser.add_argument("--grids", default="40x50,1x2000,2x997,1x4000")
    options = parser.parse_args()
    print("    grid  limit  searched  drawn  finished  peak MB")
    for text in options.grids.split(","):
        scores = planted(Grid.parse(text), np.random.default_rng(0))
        for limit in map(float, options.limits.split(",")):
            begun = time.perf_counter()
            found = solve_map(scores, Grid.parse(text), time_limit=limit, effort=20)
            searched = time.perf_counter() - begun
            _ = found.marginals
            drawn = time.perf_counter() - begun - searched
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{text:>8} {limit:6.1f} {searched:9.2f} {drawn:6.2f} {found.finished!s:>9} {peak:8.0f}")


if __name__ == "__main__":
    main()
