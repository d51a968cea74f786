"""Met-Sweep as one pure function: (pixels, options, seed) -> puzzle and truth.

canvas -> fracture -> masking -> erosion -> photometry -> presentation
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.masks import draw_masks
from jigsync.cutting.options import CutOptions
from jigsync.cutting.presentation import draw_order, draw_turns, present
from jigsync.values import z4
from jigsync.values.errors import bad_value
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth


def cut_picture(
    rgb: NDArray[np.uint8],
    options: CutOptions,
    seed: int = 0,
    source_sha256: str = "",
    name: str = "the picture",
    redraw: bool = True,
) -> tuple[Puzzle, Truth]:
    """Cuts a picture.

    Args:
        rgb: (H, W, 3) uint8, upright.
        options: what to cut and how to damage it.
        seed: 0 .. 2^63 - 1; the puzzle is a pure function of the three.
        source_sha256: recorded in the truth.
        name: how messages call the picture.
        redraw: draw again while a fragment is too small, see `draw_masks`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise bad_value("seed", "the puzzle", "an integer from 0 to 2^63 - 1", seed)
    canvas = make_canvas(rgb, options, name)
    drawn = draw_masks(options, int(seed), redraw)
    applied = draw_turns(options, drawn.seed)
    order = draw_order(options, drawn.seed)
    digits = max(3, len(str(len(order) - 1)))
    ids = tuple(f"f{k:0{digits}d}" for k in range(len(order)))
    pixels = tuple(present(canvas, drawn.masks[s], options, drawn.seed, int(s), int(applied[s])) for s in order)
    pitch = float(options.cell), float(options.cell)
    placement = {
        fragment: Placed.at(*options.grid.cell(int(slot)), z4.inverse(int(applied[slot])), pitch=pitch)
        for fragment, slot in zip(ids, order, strict=True)
    }
    flags = {"redraws": drawn.redraws, "below_area_floor": not drawn.area_floor}
    puzzle = Puzzle(Fragments(ids, pixels), options.cell, options.container)
    return puzzle, Truth(options.grid, placement, options.to_json(), int(seed), source_sha256, flags, pitch)
