"""What a solver sees: fragments with ids, and nothing else about the picture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.errors import InputError, OptionError, bad_value

Pixels = NDArray[np.uint8]
"""(H, W, 4) RGBA, colour premultiplied by alpha (colour is I * alpha)."""


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

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}"


@dataclass(frozen=True, eq=False)
class Fragments:
    """Fragments as received: ids and pixels in one object, so that no permutation can part them."""

    ids: tuple[str, ...]
    pixels: tuple[Pixels, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", tuple(self.ids))
        object.__setattr__(self, "pixels", tuple(self.pixels))
        if len(self.ids) != len(self.pixels):
            raise InputError(f"{len(self.ids)} ids for {len(self.pixels)} fragments: one id a fragment is needed.")
        if len(set(self.ids)) != len(self.ids):
            twice = next(name for name in self.ids if self.ids.count(name) > 1)
            raise InputError(f"The fragment id '{twice}' stands twice: ids must be unique.")
        for name, pixels in zip(self.ids, self.pixels, strict=True):
            if pixels.ndim != 3 or pixels.shape[2] != 4 or pixels.dtype != np.uint8 or pixels.size == 0:
                raise InputError(
                    f"The fragment '{name}' must be a non-empty (H, W, 4) uint8 RGBA array."
                    f" Got shape {pixels.shape}, {pixels.dtype} instead."
                )
            pixels.setflags(write=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> Pixels:
        try:
            return self.pixels[self.ids.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def permute(self, order: Sequence[int] | NDArray[np.integer]) -> Fragments:
        """Fragment order[k] becomes the k-th; ids travel with their pixels."""
        if sorted(int(k) for k in order) != list(range(len(self))):
            raise OptionError(f"The 'order' of permute must name each of 0..{len(self) - 1} once. Got {list(order)}.")
        return Fragments(tuple(self.ids[k] for k in order), tuple(self.pixels[k] for k in order))


@dataclass(frozen=True, eq=False)
class Puzzle:
    """N fragments of one picture, shuffled and turned. There is no grid and no truth in here.

    Attributes:
        fragments: what was received.
        cell: cell pitch in pixels, a hint only; None when it is not known.
        container: side of the square every fragment is centred in; None for fragments of mixed sizes.
    """

    fragments: Fragments
    cell: int | None = None
    container: int | None = None
    name: str = field(default="puzzle")

    @property
    def ids(self) -> tuple[str, ...]:
        """Fragment ids in presented order."""
        return self.fragments.ids

    def __len__(self) -> int:
        return len(self.fragments)

    def permute(self, order: Sequence[int] | NDArray[np.integer]) -> Puzzle:
        """The same puzzle presented in another order."""
        return Puzzle(self.fragments.permute(order), self.cell, self.container, self.name)
