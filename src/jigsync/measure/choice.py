"""Which measurer reads a puzzle when nobody names one.

Fragments that say where their cell is (presentation `cell`), and rectangles that fill their pixels, are read along the
sides of a grid. All others are read along their outlines, which say nothing of any frame.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jigsync.values.puzzle import Puzzle

OF_CELLS: Final = "learned"
OF_OUTLINES: Final = "contours"
OF_LOST_CELLS: Final = "framed"
"""For fragments of rows and columns that do not say where their cells are."""


def measurer_for(puzzle: Puzzle, in_cells: bool = False) -> str:
    """The name of the measurer that fits the fragments; wholly transparent ones have no say.

    `in_cells`: somebody knows that they stand in cells.
    """
    if in_cells or puzzle.cell is not None:
        return OF_CELLS
    opaque = all(pixels[..., 3].min() in (0, 255) and np.ptp(pixels[..., 3]) == 0 for pixels in puzzle.fragments.pixels)
    return OF_CELLS if opaque else OF_OUTLINES
