"""Benchmark on the literature's square puzzles: direct, neighbour, perfect.

    direct      fragments in their slot (with unknown turns: and turned right), in the best of the four gauges
    same pixels cells that show exactly the pixels they should: direct, with identical fragments (a blank sky)
                interchangeable
    neighbour   truly touching sides that touch
    perfect     puzzles without a mistake

As in the literature, the solver is told rows and cols.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jigsync.api import solve
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.cutting.web import WebOptions, web_picture
from jigsync.io.images import read_rgb
from jigsync.score.cells import score
from jigsync.score.touching import neighbour_accuracy
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

PLAIN: Final = WebOptions()


@dataclass(frozen=True)
class SquareRow:
    """One picture's result."""

    picture: str
    fragments: int
    direct: float
    same_pixels: float
    neighbour: float
    perfect: bool
    sra: float
    seconds: float


def same_pixels(puzzle: Puzzle, solution: Solution, truth: Truth) -> float:
    """Share of the truth's cells whose pixels in the solution are those of the true fragment, turned right."""
    shown = {
        placed.cell: z4.turn_pixels(puzzle.fragments[name], placed.turns).tobytes()
        for name, placed in solution.placement.items()
        if placed.cell is not None
    }
    right = [
        placed.cell in shown and shown[placed.cell] == z4.turn_pixels(puzzle.fragments[name], placed.turns).tobytes()
        for name, placed in truth.placement.items()
    ]
    return sum(right) / len(right)


def run_squares(
    pictures: Sequence[Path],
    options: SquareOptions,
    solver: str,
    measurer: str | None,
    seed: int,
    time_limit: float | None,
    web: WebOptions = PLAIN,
    threads: int = 2,
) -> Iterator[SquareRow]:
    """Cuts, solves and scores one picture after the other; the k-th picture is cut with seed + k.

    Args:
        web: what is done to the pictures first.
    """
    for k, picture in enumerate(pictures):
        rgb = read_rgb(picture)
        if web != PLAIN:
            rgb = web_picture(rgb, web, seed + k)
        puzzle, truth = cut_squares(rgb, options, seed + k, f"The picture '{picture}'")
        start = time.perf_counter()
        solution = solve(
            puzzle,
            solver,
            measurer=measurer,
            grid=truth.grid,
            upright=not options.turns,
            seed=seed,
            time_limit=time_limit,
            threads=threads,
        )
        seconds = time.perf_counter() - start
        # Upright puzzles have no gauge to choose: turning a solution would only ever make it worse.
        scores = score(solution, truth).best4 if options.turns else score(solution, truth).model
        yield SquareRow(
            picture.name,
            len(puzzle),
            scores.aa_rot,
            max(same_pixels(puzzle, solution.turned(g), truth) for g in range(z4.ORDER if options.turns else 1)),
            neighbour_accuracy(solution.placement, truth.placement, puzzle.ids),
            scores.pa_rot == 1.0,
            scores.sra,
            seconds,
        )
