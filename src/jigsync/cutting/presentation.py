"""Stage 6, presentation: each fragment in its container, turned, digitised, in shuffled order.

    stored = np.rot90(upright, applied_turns),   truth turns = -applied_turns

Turns are array rotations, never resampled. Unless `paper_order` is set, noise and JPEG come after the turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.masks import Mask
from jigsync.cutting.options import CutOptions
from jigsync.cutting.photometry import fade, premultiply
from jigsync.cutting.streams import Stage, stream
from jigsync.cutting.turned import digitise_box
from jigsync.values import z4
from jigsync.values.puzzle import Pixels


def present(
    canvas: NDArray[np.uint8], mask: Mask, options: CutOptions, seed: int, slot: int, applied_turns: int
) -> Pixels:
    """One fragment as the solver receives it.

    Shapes: canvas (rows * P, cols * P, 3) uint8 -> (container, container, 4) uint8, colour times alpha.
    """
    row, col = options.grid.cell(slot)
    top = row * options.cell - options.margin + mask.top
    left = col * options.cell - options.margin + mask.left
    height, width = mask.alpha.shape
    rgb = canvas[top : top + height, left : left + width]
    stored = np.zeros((options.container, options.container, 4), dtype=np.uint8)
    # A view of the stored array in upright coordinates: what is written here appears turned in `stored`.
    upright = np.rot90(stored, z4.inverse(applied_turns))
    box = upright[mask.top : mask.top + height, mask.left : mask.left + width]
    box[..., 3] = mask.alpha
    e = options.damage.photo
    if e <= 0:
        box[..., :3] = premultiply(rgb, mask.alpha)
        return stored
    faded = fade(rgb, mask.alpha, e, options.cell, stream(seed, Stage.FADE, slot))
    faded *= mask.alpha[..., None] * np.float32(1 / 255)
    camera = stream(seed, Stage.DIGITISE, slot)
    frame = 0 if options.paper_order else applied_turns
    corners = np.array([[mask.top, mask.left], [mask.top + height - 1, mask.left + width - 1]])
    corners = z4.turn_cells(corners, (options.container, options.container), frame)
    digitise_box(np.rot90(upright, frame), z4.turn_pixels(faded, frame), corners.min(axis=0), e, camera)
    return stored


def draw_turns(options: CutOptions, seed: int) -> NDArray[np.int64]:
    """applied_turns of every slot, uniform over the four, or all 0.

    Shapes: -> (N,).
    """
    if not options.turns:
        return np.zeros(options.grid.size, dtype=np.int64)
    return stream(seed, Stage.TURNS).integers(0, z4.ORDER, options.grid.size)


def draw_order(options: CutOptions, seed: int) -> NDArray[np.int64]:
    """The slot of the k-th presented fragment, a uniform permutation, or slot order.

    Shapes: -> (N,).
    """
    if not options.shuffle:
        return np.arange(options.grid.size)
    return stream(seed, Stage.SHUFFLE).permutation(options.grid.size)
