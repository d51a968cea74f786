"""Does the default solver reach the proven optimum? 3 x 3 turned puzzles at medium severity, branch and bound as proof.

    python benchmarks/optimum.py [--puzzles 200] [--severity medium] [--images DIR]

Upright puzzles are checked against all 9! placements with --upright.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from jigsync import data
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, severity
from jigsync.io.images import list_images, read_rgb
from jigsync.measure import registry
from jigsync.solvers import base
from jigsync.values.layout import Grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--puzzles", type=int, default=200)
    parser.add_argument("--severity", default="medium")
    parser.add_argument("--images", type=Path, help="folder of pictures; the bundled ones otherwise")
    parser.add_argument("--upright", action="store_true")
    args = parser.parse_args()
    pictures = list_images(args.images) if args.images else [data.picture(name) for name in data.names()]
    options = CutOptions(Grid(3, 3), damage=severity(args.severity), turns=not args.upright)
    reached = proven = 0
    seconds = {"jigsync": 0.0, "proof": 0.0}
    for k in range(args.puzzles):
        puzzle, _ = cut_picture(read_rgb(pictures[k % len(pictures)]), options, k)
        measurements = registry.get("boundary").measure(puzzle)
        request = base.SolveRequest(puzzle.ids, measurements, layout=Grid(3, 3), upright=args.upright)
        start = time.perf_counter()
        ours = base.get("jigsync").solve(request)
        middle = time.perf_counter()
        best = base.get("exhaustive" if args.upright else "exact").solve(request)
        seconds["jigsync"] += middle - start
        seconds["proof"] += time.perf_counter() - middle
        assert ours.energy is not None
        assert best.energy is not None
        proven += best.proven
        reached += ours.energy <= best.energy + 1e-3
    print(f"3x3 {args.severity}, {'upright' if args.upright else 'turned'}: {args.puzzles} puzzles")
    print(f"optimum proven      {proven} of {args.puzzles}")
    print(f"jigsync reached it  {reached} of {args.puzzles} ({reached / args.puzzles:.1%})")
    print(f"time ratio proof / jigsync  {seconds['proof'] / seconds['jigsync']:.2f}")


if __name__ == "__main__":
    main()
