"""Decodes odd problems with the library that is named: `tests/test_engine_memory.py` runs it under a sanitizer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jigsync.engine import build
from jigsync.engine.search import solve_map
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

HOOK = ((5, 4), (4, 4), (3, 4), (2, 4), (2, 5), (1, 5), (2, 6), (1, 6), (2, 7), (1, 7))
"""(row, col) of fragments that cling together: a stalk, and beside its end a block that fits a 3 x 3 grid. Grown from
the stalk's second fragment, the block lies at the canvas' rim."""


def planted(cells: tuple[tuple[int, int], ...]) -> NDArray[np.float32]:
    """Scores of fragments that belong at some cells, no turns. Shapes: -> (4N, 4N)."""
    scores = np.full((4 * len(cells), 4 * len(cells)), -6, dtype=np.float32)
    at = {cell: i for i, cell in enumerate(cells)}
    for (row, col), i in at.items():
        for b in range(z4.ORDER):
            d_row, d_col = z4.bearing_offset(b)
            j = at.get((row + d_row, col + d_col))
            if j is not None:
                scores[4 * i + b, 4 * j + (b + 2) % 4] = 8
    return scores


def decode_anything(seed: int) -> None:
    """A random problem: any shape of grid, holes or fragments too many, strong chains, pins, unary terms; every tenth
    so large that two threads climb a ladder."""
    rng = np.random.default_rng(seed)
    large = seed % 10 == 9
    grid = Grid(*(int(side) for side in (rng.integers(7, 9, 2) if large else rng.integers(1, 6, 2))))
    n = max(1, grid.size + int(rng.integers(-2, 3)))
    scores = rng.normal(-3, 2, (4 * n, 4 * n)).astype(np.float32)
    scores = (scores + scores.T) / 2
    for i in range(n - 1):
        s, t = 4 * i + int(rng.integers(4)), 4 * (i + 1) + int(rng.integers(4))
        scores[s, t] = scores[t, s] = rng.choice([-3, 8])
    upright = bool(rng.random() < 0.3)
    found = solve_map(
        SideScores(n, dense=scores, border=rng.normal(0, 2, 4 * n).astype(np.float32) if seed % 2 else None),
        grid,
        upright=upright,
        pins={0: (int(rng.integers(grid.size)), 0)} if seed % 5 == 0 else None,
        excluded=[n - 1] if seed % 7 == 0 and n > 2 else (),
        unary_turns=rng.normal(size=(n, 4)) if seed % 3 == 0 else None,
        unary_cells=rng.normal(size=(n, grid.size)) if seed % 4 == 0 else None,
        unary_poses=rng.normal(size=(n, grid.size, 4)) if large else None,
        seed=seed,
        effort=0.003 if large else 0.01,
        threads=2 if large else 1,
    )
    assert found.marginals.shape == (n,)


if __name__ == "__main__":
    build.library_path = lambda: Path(sys.argv[1])  # type: ignore[assignment,misc]
    for seed in range(20):
        solve_map(SideScores(len(HOOK), dense=planted(HOOK)), Grid(3, 3), seed=seed, effort=1e-4, threads=1)
    for seed in range(60):
        decode_anything(seed)
    print("decoded")
