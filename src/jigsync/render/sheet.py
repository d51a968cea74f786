"""The contact sheet: a puzzle as it was presented, in its own order, with its ids."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.render.style import FAINT, PAPER, fit_text, over_paper, text_size, write
from jigsync.values.errors import InputError
from jigsync.values.puzzle import Pixels, Puzzle

LARGEST: Final = 192
"""Side of a fragment's place on the sheet when there is room for it, px."""
WIDEST: Final = 2400
"""Width that sheets of thousands of fragments are scaled down to, px; never less than SMALLEST a fragment."""
SMALLEST: Final = 4
CAPTIONED: Final = 56
"""Fragments shown smaller than this get no caption, px."""
SPACE: Final = 0.08
"""Distance between two places, as a share of their side."""
ASPECT: Final = 1.4
"""Width : height that the rows and columns of a sheet aim at."""


@dataclass(frozen=True)
class _Plan:
    """Sizes in pixels: `side` of a fragment's place, `space` between two, `caption` height of a line of text."""

    rows: int
    cols: int
    side: int
    space: int
    caption: int

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the sheet: one more space than places each way, doubled at the margin."""
        height = self.rows * (self.side + self.caption + self.space) + 3 * self.space
        return height, self.cols * (self.side + self.space) + 3 * self.space

    def corner(self, number: int) -> tuple[int, int]:
        """(top, left) of the place of fragment `number`."""
        row, col = divmod(number, self.cols)
        return 2 * self.space + row * (self.side + self.caption + self.space), 2 * self.space + col * (
            self.side + self.space
        )


def contact_sheet(puzzle: Puzzle, captions: bool = True, columns: int | None = None) -> Image.Image:
    """All fragments as presented on neutral paper, as an RGB image.

    All are drawn at one scale, each in the middle of its place; places are as large as the largest fragment needs.
    Thousands of fragments are scaled down and lose their captions.

    Args:
        puzzle: the fragments.
        captions: write the ids below.
        columns: fragments a row; None gives a sheet a little wider than high.
    """
    if not len(puzzle):
        raise InputError(f"The puzzle '{puzzle.name}' has no fragment: there is nothing to show.")
    boxes = [_box(pixels) for pixels in puzzle.fragments.pixels]
    extent = max(side.stop - side.start for box in boxes for side in box)
    plan = _plan(len(puzzle), extent, captions, columns)
    page = np.empty((*plan.size, 3), dtype=np.uint8)
    page[:] = PAPER
    for number, (pixels, box) in enumerate(zip(puzzle.fragments.pixels, boxes, strict=True)):
        top, left = plan.corner(number)
        place = page[top : top + plan.side, left : left + plan.side]
        place[:] = over_paper(_scaled(_centred(pixels[box], extent), plan.side))
    sheet = Image.fromarray(page)
    if plan.caption:
        size = _caption_size(plan.side)
        for number, name in enumerate(puzzle.ids):
            top, left = plan.corner(number)
            middle = (left + plan.side / 2, top + plan.side + plan.caption / 2)
            write(sheet, fit_text(name, size, plan.side), middle, size, FAINT, "mm")
    return sheet


def _plan(count: int, extent: int, captions: bool, columns: int | None) -> _Plan:
    cols = columns or min(count, max(1, math.ceil(math.sqrt(count * ASPECT))))
    if columns is None and count > cols:
        # The fewest columns that need no more rows: no almost empty last row, no empty last column.
        cols = math.ceil(count / math.ceil(count / cols))
    side = max(SMALLEST, min(LARGEST, int(WIDEST / (cols * (1 + SPACE)))))
    if extent < side:
        side = extent * (side // extent)  # small fragments grow by whole factors: their pixels stay sharp squares
    space = max(1, round(side * SPACE))
    caption = text_size("0", _caption_size(side))[1] if captions and side >= CAPTIONED else 0
    return _Plan(math.ceil(count / cols), cols, side, space, caption)


def _caption_size(side: int) -> int:
    return max(10, min(15, round(side * 0.11)))


def _box(pixels: Pixels) -> tuple[slice, slice]:
    """The smallest box that holds the fragment; of one pixel when there is nothing in it."""
    rows, cols = (np.flatnonzero(pixels[..., 3].any(axis=axis)) for axis in (1, 0))
    if not rows.size:
        return slice(0, 1), slice(0, 1)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)


def _centred(pixels: Pixels, extent: int) -> Pixels:
    """In the middle of a transparent square of side `extent`."""
    spare = [extent - length for length in pixels.shape[:2]]
    return np.pad(pixels, (*((room // 2, room - room // 2) for room in spare), (0, 0)))


def _scaled(pixels: Pixels, side: int) -> NDArray[np.uint8]:
    if len(pixels) == side:
        return pixels
    way = cv2.INTER_AREA if side < len(pixels) else cv2.INTER_NEAREST
    return np.asarray(cv2.resize(pixels, (side, side), interpolation=way), dtype=np.uint8)
