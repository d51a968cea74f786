"""What the orientation network sees: a fragment or an assembled picture as a small square, in its four turns.

    view_k = np.rot90(view_0, k)        exact: the picture is scaled once, then turned

A window around the centre is scaled by area averages of colour times alpha. Where nothing is opaque, colours are
continued from nearby. A fragment's outline is continued by a wide blur, and what is farther away from any pixel is 0,
the network's middle grey. The gaps of an assembled picture are filled by a pyramid, which lets them vanish: they
become neither lines nor bands. Shapes: (4, size, size, 3) uint8 sRGB, opaque.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.puzzle import Pixels, Puzzle

VERSION: Final = "jigsync-views/1"
"""Of the views of fragments: changes with anything that a network trained on them would notice."""
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


def picture_view(picture: Pixels, size: int = WHOLE) -> Views:
    """An assembled picture, colour times alpha, its gaps filled. Shapes: (H, W, 4) -> (size, size, 3)."""
    small = scaled(centred(picture, max(picture.shape[:2])), (size, size))
    return np.asarray(np.clip(np.rint(continued(small)), 0, 255), dtype=np.uint8)


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
    small = scaled(pixels, shape)
    if small[..., 3].min() < 255:
        blurred = np.asarray(cv2.GaussianBlur(small, (0, 0), REACH * size, borderType=cv2.BORDER_CONSTANT))
        left = 1 - small[..., 3:] / 255
        near = np.minimum(1, blurred[..., 3:] * np.float32(4 / 255))
        beyond = blurred[..., :3] * (255 / np.maximum(blurred[..., 3:], 1))
        small[..., :3] += left * (near * beyond + (1 - near) * GREY)
    return np.asarray(np.clip(np.rint(small[..., :3]), 0, 255), dtype=np.uint8)


def scaled(pixels: Pixels, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Means of areas, or, of what is enlarged, straight lines in between. Shapes: (H, W, 4) -> (*shape, 4)."""
    mode = cv2.INTER_AREA if shape < pixels.shape[:2] else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, shape[::-1], interpolation=mode), dtype=np.float32)


def continued(small: NDArray[np.float32]) -> NDArray[np.float32]:
    """Colours, with what is transparent filled from coarser and coarser means: push and pull (Gortler et al. 1996).

    c_l = sum c_(l-1) / max(1, sum a_(l-1)) over 2 x 2 pixels, and a_l alike; u_l = c_l + (1 - a_l) up(u_(l+1))

    Shapes: (H, W, 4), colour times alpha in 0..255 -> (H, W, 3).
    """
    left = 1 - small[..., 3:] / 255
    if not left.any():
        return small[..., :3]
    height, width = small.shape[:2]
    if max(height, width) == 1:
        return np.asarray(np.where(left < 1, small[..., :3] / np.maximum(1 - left, 1e-6), GREY), dtype=np.float32)
    half = ((width + 1) // 2, (height + 1) // 2)
    coarse = 4 * np.asarray(cv2.resize(small, half, interpolation=cv2.INTER_AREA), dtype=np.float32)
    coarse /= np.maximum(coarse[..., 3:] / 255, 1)
    beyond = np.asarray(cv2.resize(continued(coarse), (width, height), interpolation=cv2.INTER_LINEAR))
    return np.asarray(small[..., :3] + left * beyond, dtype=np.float32)


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
