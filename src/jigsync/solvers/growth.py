"""Best-first growth: fragments are added one by one to a kernel, where most is known about their place.

Every free cell next to the kernel has one best candidate (fragment, turns): a best buddy of the most neighbours if
there is any, otherwise the one of the largest mean score. The next cell to fill is

    one whose candidate is a best buddy, the largest sum of scores first (a sum counts neighbours and evidence at once);
    without any best buddy, one with the most filled neighbours, the largest mean score first.

A kernel *floats* when only its bounding box has to fit
into the grid (nobody knows yet which slot its first fragment has); otherwise its cells are the grid's cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.base import Budget
from jigsync.solvers.energy import Ints
from jigsync.solvers.table import SideTable
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid


class Kernel(NamedTuple):
    """Some fragments in a common frame.

    Shapes: fragments (M,), cells (M, 2) as (row, col) of any origin, turns (M,).
    """

    fragments: Ints
    cells: Ints
    turns: Ints


class _Choice(NamedTuple):
    """The best candidate for one free cell; the larger `order`, the sooner the cell is filled."""

    order: tuple[bool, float, float]
    fragment: int
    turns: int


@dataclass(eq=False)
class _Free:
    """What is known about a free cell next to the kernel: (N, turns) sums of scores and counts of buddies."""

    sums: NDArray[np.float32]
    contacts: NDArray[np.int8]
    filled: int = 0
    choice: _Choice | None = None


class Growth:
    """A kernel and the free cells around it."""

    def __init__(
        self, table: SideTable, grid: Grid, kernel: Kernel, *, floating: bool, prefer_buddies: bool = True
    ) -> None:
        self._table, self._grid, self._floating = table, grid, floating
        self._buddies = table.buddies if prefer_buddies else np.full(4 * table.n, -1, dtype=np.int64)
        self._turns = np.array(table.turns)
        low = kernel.cells.min(axis=0)
        extent = kernel.cells.max(axis=0) - low + 1
        # A floating kernel lies so that every cell it could still reach is on the canvas, and no others.
        origin = np.array(grid.shape) - extent - low if floating else np.zeros(2, dtype=np.int64)
        height, width = 2 * np.array(grid.shape) - extent if floating else grid.shape
        self._occupant = np.full((int(height), int(width)), -1, dtype=np.int64)
        self._unused = np.zeros((table.n, 1), dtype=np.float32)  # -inf once a fragment is placed
        self._cell_turns = np.zeros(table.n, dtype=np.int64)
        self._box = [int(height), -1, int(width), -1]  # top, bottom, left, right
        self._free: dict[tuple[int, int], _Free] = {}
        self.placed = 0
        for fragment, cell, turns in zip(*kernel, strict=True):
            self.place(int(fragment), (int(cell[0] + origin[0]), int(cell[1] + origin[1])), int(turns))

    def place(self, fragment: int, cell: tuple[int, int], turns: int) -> None:
        """Puts a fragment on a canvas cell and tells the free cells around it."""
        row, col = cell
        self._occupant[cell] = fragment
        self._cell_turns[fragment] = turns
        self._unused[fragment] = -np.inf
        self._free.pop(cell, None)
        self.placed += 1
        top, bottom, left, right = before = self._box
        self._box = [min(top, row), max(bottom, row), min(left, col), max(right, col)]
        if self._box != before:  # a grown box puts cells out of reach
            self._free = {near: free for near, free in self._free.items() if self._is_open(near)}
        for free in self._free.values():
            if free.choice is not None and free.choice.fragment == fragment:
                free.choice = None
        for bearing in range(z4.ORDER):
            d_row, d_col = z4.bearing_offset(bearing)
            near = row + d_row, col + d_col
            if self._is_open(near):
                self._tell(near, 4 * fragment + (bearing - turns) % 4, bearing)

    def grow(self, budget: Budget, stage: str) -> bool:
        """Adds fragments until they or the slots run out; False when the budget stopped it."""
        target = min(self._table.n, self._grid.size)
        while self.placed < target:
            if not budget.go_on(stage, self.placed / target):
                return False
            cell, choice = self._next()
            self.place(choice.fragment, cell, choice.turns)
        return True

    def arrangement(self) -> Arrangement:
        """All fragments; what a stopped growth left over fills up in order."""
        slots = np.full(self._table.n, -1, dtype=np.int64)
        rows, cols = np.nonzero(self._occupant >= 0)
        top, left = (self._box[0], self._box[2]) if self._floating else (0, 0)
        slots[self._occupant[rows, cols]] = (rows - top) * self._grid.cols + cols - left
        free_slots = np.setdiff1d(np.arange(self._grid.size), slots)
        waiting = np.flatnonzero(slots < 0)[: len(free_slots)]
        slots[waiting] = free_slots[: len(waiting)]
        return Arrangement(self._grid, slots, self._cell_turns)

    def _is_open(self, cell: tuple[int, int]) -> bool:
        """On the canvas, free, and inside a bounding box that fits into the grid."""
        height, width = self._occupant.shape
        row, col = cell
        if not (0 <= row < height and 0 <= col < width) or self._occupant[cell] >= 0:
            return False
        top, bottom, left, right = self._box
        return max(bottom, row) - min(top, row) < self._grid.rows and max(right, col) - min(left, col) < self._grid.cols

    def _tell(self, cell: tuple[int, int], side: int, bearing: int) -> None:
        """A placed fragment's side faces this free cell, which lies along `bearing` of it."""
        shape = self._table.n, len(self._turns)
        free = self._free.setdefault(cell, _Free(np.zeros(shape, np.float32), np.zeros(shape, np.int8)))
        facing = (bearing + 2 - self._turns) % 4  # the side a candidate with these turns would show
        free.sums += self._table.row(side).reshape(-1, 4)[:, facing]
        buddy = int(self._buddies[side])
        if buddy >= 0:
            free.contacts[buddy // 4, self._turns == (bearing + 2 - buddy) % 4] += 1
        free.filled += 1
        free.choice = None

    def _next(self) -> tuple[tuple[int, int], _Choice]:
        """The free cell to fill next and what goes there."""
        best: tuple[tuple[int, int], _Choice] | None = None
        for cell, free in self._free.items():
            if free.choice is None:
                free.choice = self._choose(free)
            if best is None or free.choice.order > best[1].order:
                best = cell, free.choice
        if best is None:
            raise RuntimeError("a kernel smaller than its grid has no free cell")
        return best

    def _choose(self, free: _Free) -> _Choice:
        """The best fragment and turns for a free cell."""
        values = free.sums + self._unused
        contacts = np.where(values > -np.inf, free.contacts, 0)
        most = int(contacts.max())
        if most > 0:
            values = np.where(contacts == most, values, -np.inf)
        fragment, k = np.unravel_index(int(np.argmax(values)), values.shape)
        total = float(values[fragment, k])
        order = (True, total, 0.0) if most > 0 else (False, float(free.filled), total / free.filled)
        return _Choice(order, int(fragment), int(self._turns[k]))
