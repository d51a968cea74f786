"""Where N fragments lie, by index: what the engine, synchronization and every solver give, and all that looks at an
answer reads.

People and files see a placement, id -> `Placed`; `Assignment.placed` makes it of this. What goes into C is coded where
it crosses (`engine.problem`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from jigsync.values.errors import OptionError, bad_value
from jigsync.values.layout import Grid, Layout
from jigsync.values.placement import Placed, Placement

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of N fragments.

    Attributes:
        angle: (N,) radians.
        xy: (N, 2) px.
        component: (N,) int64, -1 when unplaced; towards another component nothing is claimed.
        pitch: of the cells that they lie in, px; None where there are none.
        quarter: do they lie at quarter turns exactly (the arrangement's `turns`)?
    """

    angle: NDArray[np.float64]
    xy: NDArray[np.float64]
    component: Ints
    pitch: float | None = None
    quarter: bool = False

    @classmethod
    def nowhere(cls, n: int) -> Poses:
        """N fragments that are unplaced."""
        return cls(np.zeros(n), np.zeros((n, 2)), np.full(n, -1, np.int64))


@dataclass(frozen=True, eq=False)
class Arrangement:
    """N fragments in the cells of a grid, or at free poses, or both.

    Attributes:
        layout: the grid the slots belong to, or free.
        slots: (N,) int64, slot = row * cols + col, -1 when unplaced; all -1 where the layout is free.
        turns: (N,) int64 in 0..3, the nearest where there are poses.
        poses: where fragments lie, unless they stand in the middle of their cells at quarter turns.
    """

    layout: Layout
    slots: Ints
    turns: Ints
    poses: Poses | None = None

    def __post_init__(self) -> None:
        for name in ("slots", "turns"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        if self.slots.ndim != 1 or self.turns.shape != self.slots.shape:
            shapes = self.slots.shape, self.turns.shape
            raise bad_value("slots and turns", "an arrangement", "two arrays of one length", shapes)

    @classmethod
    def from_placement(cls, placement: Placement, ids: Sequence[str], grid: Grid) -> Self:
        """Of fragments in cells, in the order of their ids; those that the placement does not name are unplaced."""
        at = [placement.get(name, Placed.nowhere()) for name in ids]
        slots = [-1 if placed.cell is None else grid.slot(*placed.cell) for placed in at]
        return cls(grid, np.array(slots, np.int64), np.array([placed.turns for placed in at], np.int64))

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.slots)

    @property
    def grid(self) -> Grid:
        """The grid the slots belong to; OptionError where there is none."""
        if not isinstance(self.layout, Grid):
            raise OptionError("This answer has no grid.")
        return self.layout

    @property
    def cells(self) -> Ints:
        """(N, 2) (row, col), -1 where there is none."""
        cells = np.stack(np.divmod(self.slots, self.grid.cols), axis=-1)
        cells[self.slots < 0] = -1
        return cells

    @property
    def fragments(self) -> Ints:
        """(rows, cols) the fragment in each cell, -1 for a hole."""
        out = np.full(self.grid.size, -1, dtype=np.int64)
        placed = np.flatnonzero(self.slots >= 0)
        out[self.slots[placed]] = placed
        return out.reshape(self.grid.shape)

    def among(self, n: int, chosen: Ints) -> Arrangement:
        """The same in cells for n fragments of which these are `chosen`; the others are unplaced."""
        slots, turns = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        slots[chosen], turns[chosen] = self.slots, np.where(self.slots >= 0, self.turns, 0)
        return Arrangement(self.layout, slots, turns)

    def select(self, chosen: Ints) -> Arrangement:
        """Some of the fragments, in cells."""
        return Arrangement(self.layout, self.slots[chosen], self.turns[chosen])
