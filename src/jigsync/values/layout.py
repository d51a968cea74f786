"""Layouts: what the poses of a placement must fit. A grid of cells, or nothing at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.errors import OptionError, bad_value

CELLS_PER_FRAGMENT: Final = 4
"""Most cells of a grid that somebody asks for: memory and time grow with cells, and the rest would be holes."""


@dataclass(frozen=True, order=True)
class Grid:
    """Slots in rows and columns; slot = row * cols + col."""

    rows: int
    cols: int

    def __post_init__(self) -> None:
        for name in ("rows", "cols"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise bad_value(name, "a grid", "an integer of at least 1", value)
            object.__setattr__(self, name, int(value))

    @classmethod
    def parse(cls, text: str) -> Grid:
        """'5' is 5 x 5, '4x6' is 4 rows by 6 columns."""
        match = re.fullmatch(r"\s*(\d{1,5})\s*(?:[xX]\s*(\d{1,5}))?\s*", text)
        if match is None:
            raise bad_value("grid", "the puzzle", "a number such as 5 or rows x cols such as 4x6", text)
        rows = int(match[1])
        return cls(rows, int(match[2]) if match[2] else rows)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.rows, self.cols

    @property
    def size(self) -> int:
        """Number of slots."""
        return self.rows * self.cols

    def slot(self, row: int, col: int) -> int:
        """row * cols + col."""
        return row * self.cols + col

    def cell(self, slot: int) -> tuple[int, int]:
        """(row, col) of a slot."""
        return divmod(slot, self.cols)

    def contains(self, row: int, col: int) -> bool:
        """Is (row, col) a cell of this grid?"""
        return 0 <= row < self.rows and 0 <= col < self.cols

    def cells(self) -> Iterator[tuple[int, int]]:
        """All cells in slot order."""
        return ((row, col) for row in range(self.rows) for col in range(self.cols))

    def turned(self, turns: int) -> Grid:
        """The grid after a global turn; odd turns swap rows and cols."""
        return Grid(*z4.turned_shape(self.shape, turns))

    def neighbour_slots(self) -> NDArray[np.int32]:
        """(slots, 4): the slot one step along each bearing E, N, W, S, or -1 outside the grid."""
        out = np.full((self.size, z4.ORDER), -1, dtype=np.int32)
        for slot, (row, col) in enumerate(self.cells()):
            for bearing in range(z4.ORDER):
                d_row, d_col = z4.bearing_offset(bearing)
                if self.contains(row + d_row, col + d_col):
                    out[slot, bearing] = self.slot(row + d_row, col + d_col)
        return out

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}"


def check_cells(grid: Grid, fragments: int) -> None:
    """OptionError when a grid has more cells than so many fragments may be asked to lie in."""
    if grid.size > CELLS_PER_FRAGMENT * fragments:
        raise OptionError(
            f"The 'grid' of a solve must have at most {CELLS_PER_FRAGMENT} cells for every fragment,"
            f" {CELLS_PER_FRAGMENT * fragments} for these {fragments}. Got {grid} instead."
        )


@dataclass(frozen=True)
class Free:
    """Any pose is as good as any other."""

    def __str__(self) -> str:
        return "free"


Layout = Grid | Free

FREE = Free()
"""The only free layout there is."""
