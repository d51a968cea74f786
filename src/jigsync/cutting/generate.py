"""Met-Sweep as one pure function: (pixels, options, seed) -> puzzle and truth.

canvas -> fracture -> masking -> erosion -> photometry -> presentation
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.handed import draw_applied, draw_order, fragment_ids
from jigsync.cutting.masks import draw_masks
from jigsync.cutting.options import CutOptions
from jigsync.cutting.presentation import present, present_loose
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
    count = options.grid.size
    applied = draw_applied(options.presentation, options.turns, drawn.seed, count)
    order = draw_order(options.shuffle, drawn.seed, count).tolist()
    ids = fragment_ids(count)
    flags = {"redraws": drawn.redraws, "below_area_floor": not drawn.area_floor}
    pixels, placement = [], {}
    for fragment, slot in zip(ids, order, strict=True):
        cell, turns = options.grid.cell(slot), applied[slot].turns
        if options.presentation == "cell":
            assert turns is not None, "drawn by quarter turns"
            pixels.append(present(canvas, drawn.masks[slot], options, drawn.seed, slot, turns))
            placement[fragment] = Placed.at(*cell, z4.inverse(turns), pitch=options.pitch)
        else:
            stored, pose = present_loose(canvas, drawn.masks[slot], options, drawn.seed, slot, applied[slot])
            pixels.append(stored)
            placement[fragment] = Placed(pose, cell)
    # A cell or a container would tell a solver what no scan of a real fragment tells.
    hints = (options.cell, options.container) if options.presentation == "cell" else (None, None)
    puzzle = Puzzle(Fragments(ids, tuple(pixels)), *hints)
    truth = Truth(options.grid, placement, options.to_json(), int(seed), source_sha256, flags, options.pitch)
    return puzzle, truth
