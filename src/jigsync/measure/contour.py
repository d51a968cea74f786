"""Sides read along the fragment's own contour.

Every side is turned to face east (right). On each of L rows of the cell, from the fragment's centre line outwards,
the contour is the first opaque pixel seen from the east:

    colour[y, d] = the pixel d steps inside the contour on row y        d = 0 .. D - 1
    offset[y]    = contour's distance beyond the cell's straight side   > 0 outside, < 0 eroded, in cells
    valid[y]     = there was an opaque pixel on that row

Reading at the cell's straight side instead (`straight=True`) is what the paper did; it reads background wherever the
fragment is not square and is kept for the studies that show so.

Two sides touch face to face: the second one is seen half-turned, so its rows run the other way (`facing`).
Signs: the side with bearing a faces east after -a turns (canvas bearing = bearing + turns).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.parts import side_by_side, spans
from jigsync.values import z4
from jigsync.values.errors import ImageError, InputError
from jigsync.values.puzzle import Puzzle

Scalar = TypeVar("Scalar", bound=np.generic)
OPAQUE: Final = 224
"""Alpha from which a pixel shows the fragment's own colour."""
MAX_SAMPLES: Final = 64
LARGEST_CELL: Final = 4
"""Largest cell that is believed, in sides of the largest fragment."""
ROUGH: Final = 0.01
"""Roughness in cells that nobody can tell from none."""
BLOCK: Final = 16
"""Fragments read at once."""
BAND: Final = 0.20
"""Depth of the band that is read, in cells."""


@dataclass(frozen=True, eq=False)
class Contours:
    """All sides of a puzzle, in side order 4 i + a.

    Attributes:
        cell: cell pitch in pixels that was used.
        colour: (4N, L, D, 3) float32, sRGB in [0, 1], alpha divided out.
        offset: (4N, L) float32, in cells; 0 where not valid.
        valid: (4N, L) bool.
    """

    cell: float
    colour: NDArray[np.float32]
    offset: NDArray[np.float32]
    valid: NDArray[np.bool_]

    @property
    def straight(self) -> bool:
        """Are all sides straight lines, up to a pixel? The ends of a side are cut off with the neighbouring rim."""
        lowest = np.where(self.valid, self.offset, np.inf).min(axis=1)
        highest = np.where(self.valid, self.offset, -np.inf).max(axis=1)
        return bool(((highest - lowest) * self.cell < 1.0).all())

    @property
    def own_features(self) -> NDArray[np.float32]:
        """What a side alone tells about having a neighbour: (1, r, r - median r), r the logarithm of its roughness.

            roughness = median_y |offset(y) - median offset| + ROUGH        over the valid rows, in cells

        Medians, because the seams that end at a straight side bend its contour near its ends. Shapes: -> (4N, 3).
        """
        rows = np.where(self.valid, self.offset, np.nan)
        rows[~self.valid.any(axis=1)] = 0.0
        away = np.abs(rows - np.nanmedian(rows, axis=1, keepdims=True))
        rough = np.log(np.nanmedian(away, axis=1) + ROUGH)
        return np.stack([np.ones_like(rough), rough, rough - np.median(rough)], axis=1).astype(np.float32)

    @property
    def widest_gap(self) -> float:
        """How far the contour is from the cell's side at most, in pixels."""
        return float(np.abs(self.offset).max() * self.cell)

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.valid) // z4.ORDER


def facing(rows: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same sides as seen from the fragment across the seam: rows in reverse order.

    Shapes: (S, L, ...) -> (S, L, ...).
    """
    return rows[:, ::-1]


def estimate_cell(puzzle: Puzzle) -> float:
    """Cell pitch in pixels without the hint: the median side of the fragments' areas' squares.

    Erosion takes about eps P from a side, so it reads a little low for damaged fragments, for all of them alike.
    """
    areas = [np.count_nonzero(pixels[..., 3] >= 128) for pixels in puzzle.fragments.pixels]
    return max(4.0, float(np.sqrt(np.median(areas))))


def _check(puzzle: Puzzle) -> None:
    if not len(puzzle):
        raise InputError(f"The puzzle '{puzzle.name}' must hold at least one fragment. It holds none.")
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        if pixels[..., 3].max() < OPAQUE:
            raise ImageError(
                f"The fragment '{name}' of '{puzzle.name}' must have opaque pixels (alpha from {OPAQUE})."
                f" Its highest alpha is {pixels[..., 3].max()}."
            )
    largest = max(max(pixels.shape[:2]) for pixels in puzzle.fragments.pixels)
    if puzzle.cell is not None and not 1 <= puzzle.cell <= LARGEST_CELL * largest:
        raise InputError(
            f"The cell of the puzzle '{puzzle.name}' must be of 1 to {LARGEST_CELL * largest} pixels,"
            f" {LARGEST_CELL} times its largest fragment's side. Got {puzzle.cell}."
        )


def read_contours(puzzle: Puzzle, straight: bool = False) -> Contours:
    """Reads all four sides of all fragments; InputError when there is none or one that shows nothing."""
    _check(puzzle)
    cell = float(puzzle.cell) if puzzle.cell is not None else estimate_cell(puzzle)
    samples = int(min(MAX_SAMPLES, round(cell)))
    depth = max(3, round(BAND * cell))
    n = len(puzzle)
    colour = np.zeros((4 * n, samples, depth, 3), dtype=np.float32)
    offset = np.zeros((4 * n, samples), dtype=np.float32)
    valid = np.zeros((4 * n, samples), dtype=bool)
    alike: dict[tuple[int, int], list[int]] = {}
    for i, pixels in enumerate(puzzle.fragments.pixels):
        alike.setdefault(pixels.shape[:2], []).append(i)

    def read(part: list[int]) -> None:
        # A pixel is moved about as one number, which is several times as fast as four of them.
        packed = np.stack([puzzle.fragments.pixels[i] for i in part]).view(np.uint32)[..., 0]
        for bearing in range(z4.ORDER):
            east = np.rot90(packed, z4.inverse(bearing), axes=(1, 2))
            sides = z4.ORDER * np.array(part) + bearing
            colour[sides], offset[sides], valid[sides] = _read_sides(east, cell, samples, depth, straight)

    side_by_side([partial(read, same[part]) for same in alike.values() for part in spans(len(same), BLOCK)])
    return Contours(cell, colour, offset, valid)


def _read_sides(
    east: NDArray[np.uint32], cell: float, samples: int, depth: int, straight: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Colour, offset and valid of one side of some fragments of the same size, turned to face it east.

    Shapes: (B, H, W), four bytes a pixel -> (B, L, D, 3), (B, L), (B, L).
    """
    count, height, width = east.shape
    # Row centres of the L samples; several pixel rows fall into one sample when the cell is larger than L.
    per_sample = max(1, round(cell / samples))
    centres = (height - cell) / 2 + (np.arange(samples) + 0.5) * cell / samples
    rows = np.floor(centres[:, None] + (np.arange(per_sample) - (per_sample - 1) / 2)).astype(np.int64)
    inside = (rows >= 0) & (rows < height)
    rows = np.clip(rows, 0, height - 1)
    # Nothing is read of the rows outside the cell.
    east, rows = np.ascontiguousarray(east[:, rows[0, 0] : rows[-1, -1] + 1, ::-1]), rows - rows[0, 0]
    border = width / 2 + cell / 2
    opaque = east.view(np.uint8).reshape(*east.shape, 4)[..., 3] >= OPAQUE
    away = np.argmax(opaque, axis=2)
    seen = np.take_along_axis(opaque, away[..., None], axis=2)[..., 0]
    first = np.full_like(away, width - round(border)) if straight else away
    column = np.clip(first[..., None] + np.arange(depth), 0, width - 1)
    pixels = np.take_along_axis(east, column, axis=2).view(np.uint8).reshape(*column.shape, 4).astype(np.float32)
    strip = pixels[..., :3] / np.maximum(pixels[..., 3:], np.float32(1))
    use = np.logical_and(inside, seen[:, rows])
    total = np.maximum(use.sum(axis=2), 1).astype(np.float32)
    colour = np.zeros((count, samples, depth, 3), dtype=np.float32)
    for k in range(per_sample):
        colour += strip[:, rows[:, k]] * use[..., k, None, None]
    colour /= total[..., None, None]
    beyond = (width - away - border) / cell
    offset = (beyond[:, rows] * use).sum(axis=2) / total
    valid = np.asarray(use.any(axis=2))
    for one, have in zip(colour, valid, strict=True):
        if have.any() and not have.all():
            # A row without the fragment repeats its nearest row that has one: costs need no holes.
            there = np.flatnonzero(have)
            one[:] = one[there[np.abs(np.arange(samples)[:, None] - there).argmin(axis=1)]]
    return colour, offset.astype(np.float32), valid
