"""Searches with several threads, with the library that is named: `tests/test_engine_memory.py` uses a sanitized one."""

from __future__ import annotations

import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from jigsync.engine import build
from jigsync.engine.library import Plan
from jigsync.engine.problem import CompiledProblem, codes_of
from jigsync.engine.search import solve_map
from jigsync.studies.planted import plant
from jigsync.values.layout import Grid

WORKERS = 3


def climb() -> None:
    """Workers on one ladder, and one that watches and calls them back."""
    planted = plant(Grid(8, 8), 0.3, np.random.default_rng(5))
    problem = CompiledProblem(planted.scores, planted.grid)
    start = codes_of(planted.slots, planted.turns)
    for tempering in (100_000, 10**12):
        told, score, moves = ctypes.c_int32(), ctypes.c_double(), ctypes.c_int64()
        plan = Plan(tempering=tempering, replicas=5, top=1.6, low=0.7, cancel=ctypes.addressof(told))
        plan.progress_score, plan.progress_moves = ctypes.addressof(score), ctypes.addressof(moves)
        ladder = problem.ladder(1, plan, start)
        timer = threading.Timer(1.0, setattr, (told, "value", 1))
        timer.start()
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(ladder.climb, range(WORKERS), [WORKERS] * WORKERS))
        timer.cancel()
        ladder.best()


def restarts() -> None:
    """Restarts that run ahead and are dropped, a ladder, and the marginals."""
    for seed, grid in enumerate((Grid(4, 5), Grid(8, 8))):
        planted = plant(grid, 0.4, np.random.default_rng(seed))
        found = solve_map(planted.scores, grid, seed=seed, effort=0.02, threads=4, progress=lambda *_: True)
        assert found.marginals.shape == (grid.size,)


if __name__ == "__main__":
    build.library_path = lambda: Path(sys.argv[1])  # type: ignore[assignment,misc]
    climb()
    restarts()
    print("raced")
