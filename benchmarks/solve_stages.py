"""Where the time of `jigsync.solve` goes, at n = 3, 5 and 10, with the models loaded.

    python benchmarks/solve_stages.py [--severity severe] [--repeat 3] [--image FILE] [--json]

Stages, each the quickest of the repeats:

    contours   reading every side along its contour
    costs      the training-free costs of all pairs of sides
    network    what the networks see, their codes, and the codes' products
    rest       calibration and measurements
    decoder    all grids of the ladder, and how sure each place is
    whole      `jigsync.solve`, the gauge included

Printed are shares of the whole and solves a second: the machine's seconds are for orientation only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jigsync
from jigsync import data
from jigsync.measure.boundary import make_costs, regime_of
from jigsync.measure.contour import read_contours
from jigsync.measure.learned import COST, MEASURERS, Learned, Matched, Models
from jigsync.measure.probabilities import dense_log_costs
from jigsync.solvers.base import SolveRequest
from jigsync.solvers.joint import Joint

CELLS = {3: 128, 5: 128, 10: 64}
"""n -> pixels of a cell."""


def best(repeat: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """The quickest of some calls in seconds, and what the last one gave."""
    least = float("inf")
    for _ in range(repeat):
        begun = time.perf_counter()
        value = call()
        least = min(least, time.perf_counter() - begun)
    return least, value


def stages(puzzle: jigsync.Puzzle, repeat: int) -> dict[str, float]:
    """stage -> seconds."""
    models, sides = Models.load(), slice(0, 4 * len(puzzle))
    contours_s, contours = best(repeat, lambda: read_contours(puzzle))
    plain = [name for name in MEASURERS["learned"][regime_of(contours)] if name != COST]
    costs_s, _ = best(repeat, lambda: dense_log_costs(make_costs(contours, plain), len(puzzle)))
    network_s, _ = best(repeat, lambda: Matched(models.encode(puzzle, contours)).rows(sides))
    measure_s, measured = best(repeat, lambda: Learned().measure(puzzle))
    decoder_s, _ = best(repeat, lambda: Joint().solve(SolveRequest(puzzle.ids, measured)))
    whole_s, _ = best(repeat, lambda: jigsync.solve(puzzle))
    known = contours_s + costs_s + network_s
    return {
        "contours": contours_s,
        "costs": costs_s,
        "network": network_s,
        "rest": max(0.0, measure_s - known),
        "decoder": decoder_s,
        "whole": whole_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--severity", default="severe")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--image", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = {}
    for n, cell in CELLS.items():
        puzzle = jigsync.cut(asked.image or data.picture("coffee"), n, asked.severity, cell=cell, seed=1)
        jigsync.solve(puzzle)  # loads the models
        found[n] = stages(puzzle, asked.repeat)
    if asked.json:
        print(json.dumps(found))
        return
    for n, seconds in found.items():
        whole = seconds["whole"]
        shares = "  ".join(f"{name} {100 * value / whole:.0f} %" for name, value in seconds.items() if name != "whole")
        print(f"{n:2d} x {n:<2d}  {1 / whole:6.2f} solves/s ({1000 * whole:.0f} ms)  {shares}")


if __name__ == "__main__":
    main()
