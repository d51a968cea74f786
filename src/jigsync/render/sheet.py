"""The contact sheet: a puzzle as it was presented, in its own order, with its ids."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.errors import InputError
from jigsync.puzzle import Pixels, Puzzle
from jigsync.render.style import FAINT, PAPER, fit_text, over_paper, text_size, write

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

    All are drawn at one scale with their container's centre in the middle of their place; places are as large as
    the largest fragment needs. Thousands of fragments are scaled down and lose their captions.

    Args:
        puzzle: the fragments.
        captions: write the ids below.
        columns: fragments a row; None gives a sheet a little wider than high.
    """
    if not len(puzzle):
        raise InputError(f"The puzzle '{puzzle.name}' has no fragment: there is nothing to show.")
    extent = max(_extent(pixels) for pixels in puzzle.fragments.pixels)
    plan = _plan(len(puzzle), extent, captions, columns)
    page = np.empty((*plan.size, 3), dtype=np.uint8)
    page[:] = PAPER
    for number, pixels in enumerate(puzzle.fragments.pixels):
        top, left = plan.corner(number)
        place = page[top : top + plan.side, left : left + plan.side]
        place[:] = over_paper(_scaled(_centred(pixels, extent), plan.side))
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


def _extent(pixels: Pixels) -> int:
    """Side of the smallest square around the container's centre that holds the fragment; at least 1."""
    reach = 1
    for axis in (0, 1):
        used = np.flatnonzero(pixels[..., 3].any(axis=1 - axis))
        if used.size:
            length = pixels.shape[axis]
            reach = max(reach, length - 2 * int(used[0]), 2 * (int(used[-1]) + 1) - length)
    return reach


def _centred(pixels: Pixels, extent: int) -> Pixels:
    """The square of side `extent` around the container's centre, transparent where the container ends."""
    box, pads = [], []
    for length in pixels.shape[:2]:
        first = (length - extent) // 2
        box.append(slice(max(0, first), max(0, first) + min(extent, length)))
        pads.append((max(0, -first), max(0, extent - length + min(0, first))))
    return np.pad(pixels[tuple(box)], (*pads, (0, 0)))


def _scaled(pixels: Pixels, side: int) -> NDArray[np.uint8]:
    if len(pixels) == side:
        return pixels
    way = cv2.INTER_AREA if side < len(pixels) else cv2.INTER_NEAREST
    return np.asarray(cv2.resize(pixels, (side, side), interpolation=way), dtype=np.uint8)
