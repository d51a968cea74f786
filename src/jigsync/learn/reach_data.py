"""Samples of the reach head: what is seen of a whole picture's fragments, and where each of them belongs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.learn.chunks import Sample
from jigsync.learn.mixture import ENLARGE, Pictures, draw_picture, draw_window
from jigsync.measure.learned import Models
from jigsync.values import z4
from jigsync.values.border import cells_ahead
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.sides import side_at
from jigsync.values.truth import Truth

SIDES: Final = (5, 6, 7, 8, 9, 10, 10, 10)
"""Rows, drawn evenly."""
UNEVEN, MOST = 3, 12
"""A quarter of the grids have up to so many more or fewer columns, and never more than MOST."""
CELLS: Final = (32, 64)
"""Least and largest side of a cell: small pictures are cut into small cells, enlarged as the matcher's are."""
ERODED: Final = 0.6
"""Share of eroded squares; the others have a rim cut off."""
SMALLEST: Final = 0.85
"""Of the picture's sides: half of the puzzles are cut from a window that is a little smaller."""


def sample_of(puzzle: Puzzle, truth: Truth, models: Models) -> dict[str, NDArray[Any]]:
    """What `Reach.gains` takes: looks and scores in half precision, none, ahead, length."""
    assert puzzle.cell is not None
    codes = models.encode_alike(puzzle, puzzle.cell)
    assert codes.looks is not None
    ahead, length = ahead_of(truth, puzzle.ids)
    scores = codes.logits(slice(0, z4.ORDER * len(puzzle)))
    return {
        "looks": codes.looks.astype(np.float16),
        "scores": scores.astype(np.float16),
        "none": codes.none,
        "ahead": ahead,
        "length": length,
    }


def ahead_of(truth: Truth, ids: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells between every side and the picture's border, and cells of that axis. Shapes: -> (4N,), (4N,)."""
    ahead, length = np.empty((2, z4.ORDER * len(ids)), dtype=np.int64)
    for bearing in range(z4.ORDER):
        cells, axis = cells_ahead(truth.grid, bearing)
        for i, name in enumerate(ids):
            placed = truth.placement[name]
            assert placed.row is not None and placed.col is not None
            side = side_at(i, placed.turns, bearing)
            ahead[side], length[side] = cells[truth.grid.slot(placed.row, placed.col)], axis
    return ahead, length


@dataclass(frozen=True)
class ReachData:
    """The stream of puzzles of a seed; the files are those of a matcher and a likeness head, None the shipped ones."""

    pictures: Pictures
    seed: int
    matcher: Path | None = None
    likeness: Path | None = None

    def sample(self, k: int) -> Sample:
        """The k-th puzzle: of a whole picture, or nearly, for where things are in a picture is what it is about."""
        rng = np.random.default_rng(derive_seed("reach", self.seed, k))
        rgb = draw_picture(self.pictures, rng)
        if rng.random() < 0.5:
            rgb = np.ascontiguousarray(rgb[:, ::-1])
        if rng.random() < 0.5:
            share = rng.uniform(SMALLEST, 1)
            rgb = draw_window(rgb, [int(share * side) for side in rgb.shape[:2]], rng)
        rows = cols = int(rng.choice(SIDES))
        if rng.random() < 0.25:
            cols = int(np.clip(rows + rng.integers(-UNEVEN, UNEVEN + 1), 4, MOST))
        cell = int(np.clip(ENLARGE * min(rgb.shape[0] / rows, rgb.shape[1] / cols), *CELLS))
        cut_seed = int(rng.integers(2**62))
        if rng.random() < ERODED:
            damage = Damage(0, rng.uniform(0.12, 0.22), rng.uniform(0.04, 0.18))
            cut = cut_picture(rgb, CutOptions(Grid(rows, cols), cell, damage), cut_seed, redraw=False)
        else:
            rim = round(cell * rng.uniform(0.03, 0.12))
            cut = cut_squares(rgb, SquareOptions(cell, Grid(rows, cols), rim), cut_seed)
        return sample_of(*cut, Models.load(self.matcher, self.likeness))
