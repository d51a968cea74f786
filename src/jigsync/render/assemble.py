"""The assembled picture: every placed fragment at its pose.

Composition is Porter and Duff's *disjoint over* on premultiplied pixels, C = I alpha:

    C_out = C_new + C_old min(1, (1 - alpha_new) / alpha_old)

Two fragments of one cut have alphas that sum to 1 along their seam, so there this is a plain sum and the picture
comes back without a trace of the cut; where fragments overlap, the later one covers the earlier.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.render.drawn import drawn_fragments
from jigsync.render.layout import Layout, layout_of
from jigsync.values.placement import Assembly
from jigsync.values.puzzle import Pixels, Puzzle

_ROWS_AT_ONCE: Final = 256  # straight colours are made in bands, so that the canvas is the only large array


def assemble(puzzle: Puzzle, solution: Assembly, gaps: bool = False) -> Image.Image:
    """The assembled picture as an RGBA image with straight (not premultiplied) colours.

    Args:
        puzzle: the fragments.
        solution: where they go; an unplaced fragment is not drawn.
        gaps: pull the fragments apart by an eighth of their size, so that every outline can be seen.
    """
    return assemble_in(puzzle, solution, layout_of(puzzle, solution, gaps=gaps))


def assemble_in(puzzle: Puzzle, solution: Assembly, layout: Layout) -> Image.Image:
    """`assemble` in a layout that is known already."""
    canvas = composed(puzzle, solution, layout)
    unpremultiply(canvas)
    return Image.fromarray(canvas)


def composed(puzzle: Puzzle, solution: Assembly, layout: Layout) -> Pixels:
    """The assembled picture, colour times alpha. Shapes: -> (H, W, 4) uint8."""
    canvas = np.zeros((*layout.size, 4), dtype=np.uint8)
    for drawn in drawn_fragments(puzzle, solution, layout):
        _put(canvas[drawn.region], drawn.pixels)
    return canvas


def _put(old: NDArray[np.uint8], new: Pixels) -> None:
    """Disjoint over, in place. Shapes: both (H, W, 4) premultiplied."""
    room = 255 - new[..., 3]
    crowded = old[..., 3] > room
    if crowded.any():
        under = old[crowded]
        left = room[crowded].astype(np.uint32)[:, None]
        alpha = under[:, 3:].astype(np.uint32)
        old[crowded] = (under * left + alpha // 2) // alpha
    # Saturating: noise and JPEG may have left colours a little above their alpha.
    old[:] = cv2.add(old, new)


def unpremultiply(canvas: NDArray[np.uint8]) -> None:
    """c -> round(255 c / alpha) in place; opaque and empty pixels stay bit for bit. Shapes: (H, W, 4)."""
    for first in range(0, len(canvas), _ROWS_AT_ONCE):
        band = canvas[first : first + _ROWS_AT_ONCE]
        alpha = band[..., 3]
        partly = (alpha > 0) & (alpha < 255)
        if partly.any():
            a = alpha[partly].astype(np.uint32)[:, None]
            band[partly, :3] = np.minimum((band[partly, :3] * np.uint32(255) + a // 2) // a, 255).astype(np.uint8)
