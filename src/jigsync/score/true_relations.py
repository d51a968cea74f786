"""The true relations of a puzzle's pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth
from jigsync.values.vocabulary import relation_of


def relations_of(puzzle: Puzzle, truth: Truth) -> NDArray[np.int64]:
    """Shapes: -> (N, N), -1 on the diagonal."""
    placed = [truth.placement[fragment] for fragment in puzzle.ids]
    cells, turns = np.array([one.cell for one in placed]), np.array([one.turns for one in placed])
    offset = cells[None] - cells[:, None]
    np.fill_diagonal(offset[..., 0], 1)
    relations = relation_of(offset[..., 0], offset[..., 1], turns[:, None], turns[None])
    np.fill_diagonal(relations, -1)
    return relations
