"""What the learned matcher sees of a side: a strip along the contour, the same for every cell size.

Fragments are scaled so that the cell is CELL pixels (area averages of colour times alpha). A side is turned to face
east; on each of ROWS rows, from BEYOND pixels above the cell to as many below (worn fragments lean over their
corners), the contour is the first opaque pixel seen from the east. The channels, all uint8:

    colour     3 for each of DEPTHS bands behind the contour: 1 pixel wide first, then 2, then 4; alpha divided out
    alpha      of the same bands: a thin tongue ends before the band does
    occupancy  alpha on a fixed frame, half a cell to both sides of the cell's side, 4 pixels wide each: shape, also
               where the contour folds back behind its first pixel
    offset     the contour's distance beyond the cell's side, in half pixels, plus 128
    valid      255 where an opaque pixel was seen

Shapes: strips are (4N, CHANNELS, ROWS) uint8, sides in order 4 i + a. `prepared` makes the float32 the network takes.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure.contour import OPAQUE
from jigsync.measure.parts import side_by_side, spans
from jigsync.values import z4
from jigsync.values.puzzle import Pixels, Puzzle

VERSION: Final = "jigsync-strips/1"
"""Changes with anything below that a trained network would notice."""
CELL: Final = 64
BEYOND: Final = 8
ROWS: Final = CELL + 2 * BEYOND
OUTSIDE: Final = 40
"""Pixels of the frame outside the cell's side, where the fragment may bulge."""
BANDS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28)
"""Borders of the bands behind the contour, in pixels."""
DEPTHS: Final = len(BANDS) - 1
OCCUPANCY: Final = 16
COLOUR: Final = slice(0, 3 * DEPTHS)
ALPHA: Final = slice(3 * DEPTHS, 4 * DEPTHS)
FRAME: Final = slice(4 * DEPTHS, 4 * DEPTHS + OCCUPANCY)
OFFSET: Final = 4 * DEPTHS + OCCUPANCY
VALID: Final = OFFSET + 1
CHANNELS: Final = VALID + 1
BLOCK: Final = 32
"""Fragments read at once."""

_HALF: Final = CELL // 2 + OUTSIDE
_SIDE: Final = 2 * _HALF


def read_strips(puzzle: Puzzle, cell: float) -> NDArray[np.uint8]:
    """All sides of all fragments, for the cell pitch in pixels. Shapes: -> (4N, CHANNELS, ROWS) uint8."""
    n = len(puzzle)
    out = np.empty((n, z4.ORDER, CHANNELS, ROWS), dtype=np.uint8)

    def read(block: slice) -> None:
        part = puzzle.fragments.pixels[block]
        frames = np.zeros((len(part), _SIDE, _SIDE, 4), dtype=np.uint8)
        for frame, pixels in zip(frames, part, strict=True):
            _scale_into(frame, pixels, cell)
        for bearing in range(z4.ORDER):
            east = np.rot90(frames, z4.inverse(bearing), axes=(1, 2))
            top, left = _HALF - ROWS // 2, _HALF - CELL // 2
            region = np.ascontiguousarray(east[:, top : top + ROWS, left:])
            _read(region, out[block, bearing])

    side_by_side([partial(read, block) for block in spans(n, BLOCK)])
    return out.reshape(z4.ORDER * n, CHANNELS, ROWS)


def _scale_into(frame: NDArray[np.uint8], pixels: Pixels, cell: float) -> None:
    """Writes a fragment, scaled and centred, into its frame. Shapes: frame (F, F, 4), pixels (H, W, 4)."""
    height, width = (max(2, 2 * round(side * CELL / 2 / cell)) for side in pixels.shape[:2])
    if (height, width) != pixels.shape[:2]:
        smaller = height < pixels.shape[0] or width < pixels.shape[1]
        mode = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        pixels = np.asarray(cv2.resize(pixels, (width, height), interpolation=mode), dtype=np.uint8)
    rows, cols = min(height, _SIDE) // 2, min(width, _SIDE) // 2
    inner = pixels[height // 2 - rows : height // 2 + rows, width // 2 - cols : width // 2 + cols]
    frame[_HALF - rows : _HALF + rows, _HALF - cols : _HALF + cols] = inner


def _read(region: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    """Fills the channels of one side of some fragments.

    Shapes: region (n, ROWS, CELL + OUTSIDE, 4), its column CELL is the first outside the cell -> out (n, C, ROWS).
    """
    alpha = region[..., 3]
    opaque = alpha >= OPAQUE
    width = alpha.shape[2]
    last = width - 1 - np.argmax(opaque[..., ::-1], axis=2)
    valid = opaque.any(axis=2) & (last >= BANDS[-1] - 1)
    last = np.where(valid, last, CELL - 1)
    columns = last[..., None] - np.arange(BANDS[-1])
    # A pixel is moved about as one number, which is several times as fast as four of them.
    packed = np.take_along_axis(region.view(np.uint32)[..., 0], columns, axis=2)
    behind = packed.view(np.uint8).reshape(*columns.shape, 4).astype(np.float32)
    band = np.add.reduceat(behind, BANDS[:-1], axis=2)
    total = band[..., 3]
    colour = np.minimum(band[..., :3] * (255 / np.maximum(total, 1))[..., None], 255)
    colour *= valid[..., None, None]
    n = len(region)
    out[:, COLOUR] = colour.reshape(n, ROWS, -1).swapaxes(1, 2).round()
    out[:, ALPHA] = (total / np.diff(BANDS) * valid[..., None]).swapaxes(1, 2).round()
    occupied = alpha[..., CELL // 2 : CELL // 2 + CELL].reshape(n, ROWS, OCCUPANCY, -1).mean(axis=3, dtype=np.float32)
    out[:, FRAME] = occupied.swapaxes(1, 2).round()
    # The pixel outside the contour is covered in part: the contour lies that much further out.
    rim = np.take_along_axis(alpha, np.minimum(last + 1, width - 1)[..., None], axis=2)[..., 0]
    offset = last + 1 - CELL + np.where(last + 1 < width, rim, 0).astype(np.float32) / 255
    out[:, OFFSET] = np.where(valid, np.clip(np.round(2 * offset) + 128, 0, 255), 128)
    out[:, VALID] = np.where(valid, 255, 0)


def prepared(strips: NDArray[np.uint8]) -> NDArray[np.float32]:
    """One puzzle's strips as the network takes them: colours relative to the puzzle's own mean and spread.

    Shapes: (4N, CHANNELS, ROWS) uint8 -> float32.
    """
    out = strips.astype(np.float32)
    out *= np.float32(1 / 255)
    colour = out[:, COLOUR].reshape(len(out), DEPTHS, 3, ROWS)
    weight = out[:, None, None, VALID]
    count = max(1.0, float(weight.sum()))
    mean = (colour[:, :8].mean(axis=1, keepdims=True) * weight).sum(axis=(0, 1, 3)) / np.float32(count)
    colour -= mean[:, None]
    colour *= weight
    spread = float(np.sqrt(np.square(colour[:, :8]).mean(axis=1).sum() / (3 * count)))
    colour *= np.float32(1 / max(spread, 0.04))
    out[:, OFFSET] = (strips[:, OFFSET].astype(np.float32) - 128) / 32
    return out
