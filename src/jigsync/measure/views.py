"""What the orientation network sees: a fragment or an assembled picture as a small square, in its four turns.

    view_k = np.rot90(view_0, k)        exact: the picture is scaled once, then turned

A window around the centre is scaled by area averages of colour times alpha. Where nothing is opaque, colours are
continued from nearby by a normalised blur, so that the gaps of an assembled picture do not become lines; what is
farther away from any pixel is 0, the network's middle grey. Shapes: (4, size, size, 3) uint8 sRGB, opaque.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.puzzle import Pixels, Puzzle

VERSION: Final = "jigsync-views/1"
"""Changes with anything below that a trained network would notice."""
FRAGMENT: Final = 64
"""Side of a fragment's view."""
WHOLE: Final = 192
"""Side of an assembled picture's view. A little more than what the head is trained at (`learn/unary_data.py`): 360
square assemblies of 90 validation pictures, -log p of the true turn at 160 / 192 pixels: 0.69, 0.65."""
WINDOW: Final = 1.1
"""Side of the window around a fragment's centre, in cells: what bulges farther out is cut off."""
REACH: Final = 1 / 12
"""Standard deviation of the blur that continues colours, in sides of the view."""
GREY: Final = 127

Views = NDArray[np.uint8]


def fragment_views(puzzle: Puzzle, cell: float, size: int = FRAGMENT, part: slice = slice(None)) -> Views:
    """Fragments, or a part of them, in their four turns, for the cell pitch in pixels.

    Shapes: -> (N, 4, size, size, 3).
    """
    side = max(2, 2 * round(WINDOW * cell / 2))  # even, as containers are: turning one moves nothing by a pixel
    windows = (centred(pixels, side) for pixels in puzzle.fragments.pixels[part])
    return np.stack([four_turns(filled(window, (size, size), size)) for window in windows])


def picture_views(picture: Pixels) -> Views:
    """An assembled picture, colour times alpha, in its four turns. Shapes: (H, W, 4) -> (4, WHOLE, WHOLE, 3)."""
    return four_turns(filled(centred(picture, max(picture.shape[:2])), (WHOLE, WHOLE), WHOLE))


def centred(pixels: Pixels, side: int) -> Pixels:
    """The square of this side around the centre, transparent where there is no picture. Shapes: -> (side, side, 4)."""
    out = np.zeros((side, side, 4), dtype=np.uint8)
    height, width = pixels.shape[:2]
    rows, cols = min(height, side), min(width, side)
    top, left = (height - rows) // 2, (width - cols) // 2
    to_row, to_col = (side - rows) // 2, (side - cols) // 2
    out[to_row : to_row + rows, to_col : to_col + cols] = pixels[top : top + rows, left : left + cols]
    return out


def filled(pixels: Pixels, shape: tuple[int, int], size: int) -> Views:
    """Pixels scaled to `shape`, with what is transparent filled from nearby, as for views of `size` pixels.

    rgb = c + (1 - a) a' u + (1 - a)(1 - a') grey,   u = blur(c) / blur(a),   a' = min(1, 4 blur(a))

    Shapes: (H, W, 4) uint8, colour times alpha -> (*shape, 3) uint8.
    """
    mode = cv2.INTER_AREA if shape < pixels.shape[:2] else cv2.INTER_LINEAR
    small = np.asarray(cv2.resize(pixels, shape[::-1], interpolation=mode), dtype=np.float32)
    if small[..., 3].min() < 255:
        blurred = np.asarray(cv2.GaussianBlur(small, (0, 0), REACH * size, borderType=cv2.BORDER_CONSTANT))
        left = 1 - small[..., 3:] / 255
        near = np.minimum(1, blurred[..., 3:] * np.float32(4 / 255))
        beyond = blurred[..., :3] * (255 / np.maximum(blurred[..., 3:], 1))
        small[..., :3] += left * (near * beyond + (1 - near) * GREY)
    return np.asarray(np.clip(np.rint(small[..., :3]), 0, 255), dtype=np.uint8)


def four_turns(view: Views) -> Views:
    """Shapes: (S, S, 3) -> (4, S, S, 3)."""
    return np.stack([z4.turn_pixels(view, k) for k in range(z4.ORDER)])


def prepared(views: Views) -> NDArray[np.float32]:
    """As the network takes them: (rgb - 127) / 128. Shapes: (..., S, S, 3) uint8 -> (B, 3, S, S) float32."""
    flat = views.reshape(-1, *views.shape[-3:])
    out = np.ascontiguousarray(flat.transpose(0, 3, 1, 2)).astype(np.float32)  # bytes are moved about, not floats
    out -= GREY
    out *= np.float32(1 / 128)
    return out
