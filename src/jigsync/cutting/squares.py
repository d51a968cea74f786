"""The literature's square puzzles: native pixels, flush squares without a container, optionally with cut-off rims.

Unlike Met-Sweep's canvas stage nothing is resized unless a grid is asked for: benchmark pictures are cut as they are,
what is left over at the right and the bottom is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.handed import draw_order, draw_turns, fragment_ids
from jigsync.cutting.options import CutOptions
from jigsync.values import z4
from jigsync.values.errors import ImageError, bad_value
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth


@dataclass(frozen=True)
class SquareOptions:
    """How a square puzzle is cut.

    Attributes:
        side: side of a square in pixels.
        grid: None cuts as many squares as the picture holds; a grid resizes and crops the picture first.
        erode: pixels cut from every side of every square; they become transparent.
        turns: turn every fragment by a random multiple of 90 degrees.
    """

    side: int = 28
    grid: Grid | None = None
    erode: int = 0
    turns: bool = True

    def __post_init__(self) -> None:
        if not 4 <= self.side <= 1024:
            raise bad_value("side", "a square puzzle", "from 4 to 1024 pixels", self.side)
        if not 0 <= 4 * self.erode < self.side:
            raise bad_value("erode", "a square puzzle", f"from 0 to below a quarter of {self.side}", self.erode)


def cut_squares(
    rgb: NDArray[np.uint8], options: SquareOptions, seed: int = 0, name: str = "the picture"
) -> tuple[Puzzle, Truth]:
    """Cuts, turns and shuffles; a pure function of its arguments.

    Shapes: rgb (H, W, 3) uint8 -> fragments (side, side, 4).
    """
    side = options.side
    if options.grid is None:
        grid_shape = rgb.shape[0] // side, rgb.shape[1] // side
        if min(grid_shape) < 1 or max(grid_shape) < 2:
            found = f"{rgb.shape[1]} x {rgb.shape[0]}"
            raise ImageError(f"{name} is {found} pixels: too small for two {side}-pixel squares.")
        grid = Grid(*grid_shape)
    else:
        grid = options.grid
        rgb = make_canvas(rgb, CutOptions(grid, cell=side), name)
    rows, cols = grid.shape
    cells = rgb[: rows * side, : cols * side].reshape(rows, side, cols, side, 3).swapaxes(1, 2)
    cells = cells.reshape(-1, side, side, 3)
    alpha = np.zeros((side, side), dtype=np.uint8)
    alpha[options.erode : side - options.erode, options.erode : side - options.erode] = 255
    fragments = np.empty((grid.size, side, side, 4), dtype=np.uint8)
    fragments[..., :3] = np.where(alpha[..., None] > 0, cells, 0)
    fragments[..., 3] = alpha
    count = grid.size
    applied = draw_turns(options.turns, seed, count)
    order = draw_order(True, seed, count)
    ids = fragment_ids(count)
    pixels = tuple(z4.turn_pixels(fragments[s], int(applied[s])) for s in order)
    pitch = float(side), float(side)
    placement = {
        fragment: Placed.at(*grid.cell(int(s)), z4.inverse(int(applied[s])), pitch=pitch)
        for fragment, s in zip(ids, order, strict=True)
    }
    return Puzzle(Fragments(ids, pixels), side, side), Truth(grid, placement, seed=seed, pitch=pitch)
