"""Stage 6, presentation: each fragment turned and digitised, in its container or without any frame.

    stored = np.rot90(upright, applied_turns),   truth turns = -applied_turns

Quarter turns are array rotations, never resampled. Unless `paper_order` is set, noise and JPEG come after the turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.masks import Mask
from jigsync.cutting.options import CutOptions
from jigsync.cutting.photometry import fade, premultiply
from jigsync.cutting.streams import Stage, stream
from jigsync.cutting.turned import digitise_box, hand_out, premultiplied, trimmed
from jigsync.values import z4
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels


def present(
    canvas: NDArray[np.uint8], mask: Mask, options: CutOptions, seed: int, slot: int, applied_turns: int
) -> Pixels:
    """One fragment as the solver receives it.

    Shapes: canvas (rows * P, cols * P, 3) uint8 -> (container, container, 4) uint8, colour times alpha.
    """
    rgb, _ = _box_of(canvas, mask, options, slot)
    height, width = mask.alpha.shape
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


def present_loose(
    canvas: NDArray[np.uint8], mask: Mask, options: CutOptions, seed: int, slot: int, applied: Pose
) -> tuple[Pixels, Pose]:
    """One fragment without a frame, and its true pose.

    `cropped` is the content of what `present` gives. `any` has the same damage, is resampled once, then digitised.

    Shapes: canvas (rows * P, cols * P, 3) uint8 -> (H, W, 4).
    """
    if options.presentation == "cropped":
        assert applied.turns is not None, "drawn by quarter turns"
        pixels, offset = trimmed(present(canvas, mask, options, seed, slot, applied.turns))
        cell = Placed.at(*options.grid.cell(slot), z4.inverse(applied.turns), pitch=options.pitch)
        assert cell.pose is not None
        return pixels, cell.pose.compose(Pose.of_turns(0, offset))
    rgb, (left, top) = _box_of(canvas, mask, options, slot)
    colour = rgb * np.float32(1 / 255)
    if options.damage.photo > 0:
        colour = fade(rgb, mask.alpha, options.damage.photo, options.cell, stream(seed, Stage.FADE, slot))
    height, width = mask.alpha.shape
    camera = stream(seed, Stage.DIGITISE, slot)
    middle = left + width / 2, top + height / 2
    return hand_out(premultiplied(colour, mask.alpha), applied, middle, options.damage.photo, camera)


def _box_of(
    canvas: NDArray[np.uint8], mask: Mask, options: CutOptions, slot: int
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """The mask's box of the canvas, and its corner (left, top)."""
    row, col = options.grid.cell(slot)
    top = row * options.cell - options.margin + mask.top
    left = col * options.cell - options.margin + mask.left
    height, width = mask.alpha.shape
    return canvas[top : top + height, left : left + width], (left, top)
