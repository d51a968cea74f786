"""Samples of the pairwise model: a puzzle's frozen features and the relations of all its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.learn.chunks import Sample
from jigsync.learn.mixture import MIXTURE, Pictures, draw_kind, draw_picture
from jigsync.measure.pairwise import features_of
from jigsync.measure.unary import UnaryModel, load_unary
from jigsync.score.true_relations import relations_of
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

SIDES: Final = (3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 8, 10)
"""Sides of grids, drawn evenly; large ones cost most of the time."""
CELL: Final = 64
KINDS: Final = {name: kind for name, kind in MIXTURE.items() if kind.rim is None}


def sample_of(puzzle: Puzzle, truth: Truth, encoder: UnaryModel) -> dict[str, NDArray[Any]]:
    """features (N, 4, F + HEADS) float16 and relations (N, N) int64, -1 on the diagonal."""
    assert puzzle.cell is not None
    return {"features": features_of(puzzle, puzzle.cell, encoder), "relations": relations_of(puzzle, truth)}


@dataclass(frozen=True)
class PairwiseData:
    """The stream of puzzles of a seed; `encoder` is a file of the unary head, None the shipped one."""

    pictures: Pictures
    seed: int
    encoder: Path | None = None

    def sample(self, k: int) -> Sample:
        """The k-th puzzle: of a whole picture, as Met-Sweep cuts it."""
        rng = np.random.default_rng(derive_seed("pairwise", self.seed, k))
        rgb = draw_picture(self.pictures, rng)
        kind = KINDS[draw_kind(KINDS, rng)]
        side = int(rng.choice(SIDES))
        grid = Grid(side, min(max(SIDES), side + int(rng.random() < 0.3)))
        grid = Grid(*grid.shape[:: rng.choice((-1, 1))])
        cut = cut_picture(rgb, CutOptions(grid, CELL, kind.damage(rng)), int(rng.integers(2**62)), redraw=False)
        return sample_of(*cut, load_unary(self.encoder))
