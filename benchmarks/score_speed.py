"""How many puzzles a second are scored, in one batch and one by one.

python benchmarks/score_speed.py
"""

from __future__ import annotations

import time

import numpy as np

from jigsync.score.cells import score, score_batch
from jigsync.solution import Solution
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.truth import Truth

BATCH = 100_000
SINGLE = 500


def main() -> None:
    """One line a grid: puzzles a second both ways, both gauges and all six measures each time."""
    rng = np.random.default_rng(0)
    print(f"{'grid':>6} {'batch of':>9} {'seconds':>8} {'puzzles/s':>10} {'one by one/s':>13} {'ratio':>6}")
    for grid in (Grid(3, 3), Grid(5, 5), Grid(8, 8), Grid(10, 10)):
        batch, seconds = _batch(grid, rng)
        single = _single(grid, rng)
        print(f"{grid!s:>6} {BATCH:>9} {seconds:>8.2f} {batch:>10.0f} {single:>13.0f} {batch / single:>6.1f}")


def _answers(grid: Grid, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shuffled cells (count, N, 2), turns (count, N), and the true cells (N, 2)."""
    cells = np.array(list(grid.cells()))
    order = rng.permuted(np.tile(np.arange(grid.size), (count, 1)), axis=1)
    return cells[order], rng.integers(0, 4, order.shape), cells


def _batch(grid: Grid, rng: np.random.Generator) -> tuple[float, float]:
    cells, turns, true_cells = _answers(grid, BATCH, rng)
    true_turns = np.arange(grid.size) % 4
    start = time.perf_counter()
    score_batch(cells, turns, grid.shape, true_cells, true_turns)
    seconds = time.perf_counter() - start
    return BATCH / seconds, seconds


def _single(grid: Grid, rng: np.random.Generator) -> float:
    cells, turns, true_cells = _answers(grid, SINGLE, rng)
    ids = [f"f{k:03d}" for k in range(grid.size)]
    truth = Truth(
        grid,
        {name: Placed.at(*map(int, cell), k % 4) for k, (name, cell) in enumerate(zip(ids, true_cells, strict=True))},
    )
    solutions = [
        Solution(
            "ok", "", grid, {name: Placed.at(*map(int, c), int(t)) for name, c, t in zip(ids, at, turned, strict=True)}
        )
        for at, turned in zip(cells, turns, strict=True)
    ]
    start = time.perf_counter()
    for solution in solutions:
        score(solution, truth)
    return SINGLE / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
