"""One small puzzle that no symmetry can satisfy, cut by plain slicing, independent of the generator.

2 rows x 3 cols, odd and even turns, a picture without symmetry, ids that are not consecutive and not in slot order,
and a graph of measured pairs that is not connected (CONVENTIONS, line 10).
"""

from __future__ import annotations

import numpy as np

from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth

CELL = 5
GRID = Grid(2, 3)
PLACEMENT = {
    "f07": Placed.at(1, 2, 3),
    "f02": Placed.at(0, 0, 1),
    "f19": Placed.at(0, 2, 0),
    "f11": Placed.at(1, 0, 3),
    "f03": Placed.at(0, 1, 2),
    "f30": Placed.at(1, 1, 1),
}
PAIRS = (("f02", "f03"), ("f03", "f19"), ("f11", "f30"), ("f30", "f07"))
"""The two rows hang together, the rows with each other do not."""


def picture() -> Pixels:
    """(10, 15, 4) uint8, opaque noise."""
    pixels = np.random.default_rng(7).integers(0, 256, (GRID.rows * CELL, GRID.cols * CELL, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    return pixels


def upright(row: int, col: int) -> Pixels:
    """The pixels of a cell as they stand in the picture."""
    return picture()[row * CELL : (row + 1) * CELL, col * CELL : (col + 1) * CELL]


def stored(name: str) -> Pixels:
    """A fragment as received: turned back by its truth's turns."""
    placed = PLACEMENT[name]
    assert placed.cell is not None
    return np.ascontiguousarray(np.rot90(upright(*placed.cell), -placed.turns))


def puzzle() -> Puzzle:
    """What a solver sees."""
    return Puzzle(Fragments(tuple(PLACEMENT), tuple(stored(name) for name in PLACEMENT)), CELL, CELL)


def truth() -> Truth:
    """What it must never see."""
    return Truth(GRID, PLACEMENT)


def paste(placement: dict[str, Placed], grid: Grid) -> Pixels:
    """The assembled picture, fragment by fragment."""
    out = np.zeros((grid.rows * CELL, grid.cols * CELL, 4), dtype=np.uint8)
    for name, placed in placement.items():
        if placed.row is not None and placed.col is not None:
            out[placed.row * CELL :, placed.col * CELL :][:CELL, :CELL] = np.rot90(stored(name), placed.turns)
    return out
