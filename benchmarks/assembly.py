"""How well torn puzzles are put together, told apart from how well they are measured.

    python benchmarks/assembly.py [--images DIR] [--pieces 9,25,100] [--erosion 0,2,4] [--puzzles 10]
                                  [--measurer planted]

`planted` makes hypotheses of known quality from the true poses (`studies.planted_pairs`); any other name is a measurer.
Per row: the share of true contacts that have a hypothesis, of true ones among the best N (N true contacts), of
fragments right, of perfect puzzles and of right contacts, and the seconds of processor time of measuring and solving.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from jigsync import data
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.images import list_images, read_rgb
from jigsync.measure import registry
from jigsync.measure.outline import read_outlines
from jigsync.score.motion import TURN
from jigsync.score.poses import SHARE, score_placement
from jigsync.score.sizes import sizes_of
from jigsync.solvers import base
from jigsync.studies.planted_pairs import Quality, plant
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.layout import FREE
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

QUALITIES = {
    0: Quality(found=0.95, false=4.0, apart=6.0, xy=1.0, angle=float(np.radians(1.0))),
    2: Quality(found=0.85, false=6.0, apart=5.0, xy=3.0, angle=float(np.radians(2.0))),
    4: Quality(found=0.70, false=8.0, apart=3.5, xy=5.0, angle=float(np.radians(3.0))),
}
"""By per cent of erosion; in between the nearest one."""


class Row(NamedTuple):
    """One puzzle."""

    found: float
    best: float
    right: float
    perfect: float
    contacts: float
    measuring: float
    solving: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, help="folder of pictures; the bundled ones otherwise")
    parser.add_argument("--pieces", default="9,25,100")
    parser.add_argument("--erosion", default="0,2,4", help="per cent of a piece's size")
    parser.add_argument("--size", type=int, default=110)
    parser.add_argument("--puzzles", type=int, default=10)
    parser.add_argument("--measurer", default="planted")
    parser.add_argument("--solver", default="free")
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--each", action="store_true", help="print every puzzle")
    args = parser.parse_args()
    pictures = list_images(args.images) if args.images else [data.picture(name) for name in data.names()]
    print("pieces  erosion  puzzles  found  best N  right  perfect  contacts  measure s  solve s")
    for pieces in map(int, args.pieces.split(",")):
        for erosion in map(float, args.erosion.split(",")):
            options = TearOptions(pieces=pieces, size=args.size, erosion=erosion / 100)
            rows = []
            for k in range(args.puzzles):
                puzzle, truth = tear_picture(read_rgb(pictures[k % len(pictures)]), options, k)
                rows.append(_row(puzzle, truth, erosion, args.measurer, args.solver, args.time_limit, k))
                if args.each:
                    print("   ", k, " ".join(f"{value:.3f}" for value in rows[-1]), flush=True)
            mean = Row(*np.mean(rows, axis=0).tolist())
            print(
                f"{pieces:6d}  {erosion:6g}%  {len(rows):7d}  {mean.found:5.3f}  {mean.best:6.3f}  {mean.right:5.3f}"
                f"  {mean.perfect:7.2f}  {mean.contacts:8.3f}  {mean.measuring:9.2f}  {mean.solving:7.2f}",
                flush=True,
            )


def _row(
    puzzle: Puzzle, truth: Truth, erosion: float, measurer: str, solver: str, time_limit: float | None, seed: int
) -> Row:
    start = time.process_time()
    measured = _planted(puzzle, truth, erosion, seed) if measurer == "planted" else None
    measurements = measured or registry.get(measurer).measure(puzzle)
    middle = time.process_time()
    request = base.SolveRequest(puzzle.ids, measurements, FREE, time_limit=time_limit)
    answer = base.get(solver).solve(request)
    end = time.process_time()
    scores = score_placement(answer.placed(puzzle)[0], truth.placement, sizes_of(puzzle), truth.contacts, None)
    found, best = _true_hypotheses(puzzle, truth, measurements)
    return Row(found, best, scores.right, scores.perfect, scores.contacts or 0.0, middle - start, end - middle)


def _planted(puzzle: Puzzle, truth: Truth, erosion: float, seed: int) -> Measurements:
    outlines, _ = read_outlines(puzzle)
    poses = [placed.pose for name in puzzle.ids if (placed := truth.placement[name]).pose is not None]
    size = float(np.sqrt(np.median([np.count_nonzero(pixels[..., 3] > 127) for pixels in puzzle.fragments.pixels])))
    quality = QUALITIES[min(QUALITIES, key=lambda known: abs(known - erosion))]
    rng = np.random.default_rng(seed)
    planted = plant(outlines, [p for p in poses if p is not None], rng, quality, 0.06 * size + 0.025 * erosion * size)
    return Measurements(puzzle.ids, Hypothesised(planted.hypotheses, size, outlines, planted.matches))


def _true_hypotheses(puzzle: Puzzle, truth: Truth, measurements: Measurements) -> tuple[float, float]:
    """(share of true contacts that have a true hypothesis, share of true ones among the best N)."""
    pairs = measurements.pairs
    assert isinstance(pairs, Hypothesised)
    found, sizes = pairs.found, sizes_of(puzzle)
    contacts = truth.contacts or frozenset()
    true, seen = np.zeros(len(found), dtype=bool), set()
    for k in range(len(found)):
        a, b = puzzle.ids[found.i[k]], puzzle.ids[found.j[k]]
        if (min(a, b), max(a, b)) not in contacts:
            continue
        one, other = truth.placement[a].pose, truth.placement[b].pose
        assert one is not None
        assert other is not None
        right, said = one.between(other), found.pose(k)
        off = np.hypot(*(np.array(right.xy) - said.xy)) / (SHARE * (sizes[a] + sizes[b]) / 2)
        turn = abs(right.inverse().compose(said).angle) / TURN
        true[k] = off <= 1 and turn <= 1
        if true[k]:
            seen.add((min(a, b), max(a, b)))
    best = np.argsort(-found.log_odds, kind="stable")[: len(contacts)]
    return len(seen) / max(1, len(contacts)), float(true[best].sum()) / max(1, len(contacts))


if __name__ == "__main__":
    main()
