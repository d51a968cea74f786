"""Do the two exact solvers agree? 200 upright 3 x 3 puzzles against all 9!, 200 turned 2 x 3 against all 6! 4^6.

python benchmarks/exact_agreement.py [--puzzles 200]

The scores are random, with a standard deviation of 3; true neighbours stand out by 0 in the first puzzle to 8 in the
last, so that hopeless, hard and easy puzzles are all among them. Also timed: turned 3 x 3, which only the branch and
bound can do.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from jigsync.solvers import base
from jigsync.values.layout import Grid

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from planted import planted


def main() -> int:
    """One line a setting; exit code 1 when any pair of energies differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzles", type=int, default=200)
    count = parser.parse_args().puzzles
    print(f"{'setting':>12} {'agree':>9} {'proven':>9} {'branch and bound: median / slowest':>36} {'all: median':>12}")
    agreed = [_compare(Grid(3, 3), False, count), _compare(Grid(2, 3), True, count)]
    _compare(Grid(3, 3), True, count, enumerate_too=False)
    return 0 if all(agreed) else 1


def _compare(grid: Grid, turned: bool, count: int, enumerate_too: bool = True) -> bool:
    exact, everything = base.get("exact"), base.get("exhaustive")
    same = proven = 0
    branch_seconds, all_seconds = [], []
    for seed in range(count):
        puzzle = planted(grid, seed, turned=turned, noise=3.0, good=8.0 * seed / max(1, count - 1))
        request = puzzle.request(layout=grid, upright=not turned)
        start = time.perf_counter()
        answer = exact.solve(request)
        branch_seconds.append(time.perf_counter() - start)
        proven += answer.proven
        if enumerate_too:
            start = time.perf_counter()
            other = everything.solve(request)
            all_seconds.append(time.perf_counter() - start)
            same += other.proven and abs((answer.energy or 0.0) - (other.energy or 0.0)) < 1e-4
    name = f"{grid} {'turned' if turned else 'upright'}"
    agree = f"{same}/{count}" if enumerate_too else "-"
    branch = f"{np.median(branch_seconds) * 1e3:.1f} / {max(branch_seconds) * 1e3:.0f} ms"
    whole = f"{np.median(all_seconds) * 1e3:.0f} ms" if enumerate_too else "-"
    print(f"{name:>12} {agree:>9} {f'{proven}/{count}':>9} {branch:>36} {whole:>12}", flush=True)
    return not enumerate_too or same == count == proven


if __name__ == "__main__":
    raise SystemExit(main())
