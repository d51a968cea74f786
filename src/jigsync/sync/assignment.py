"""Slots from continuous positions: Hungarian assignment, one fragment a slot.

    minimise  sum_i |x_i + shift - cell(slot_i)|^2

A single component that fills the grid needs no shift: expanding the square shows that neither shift nor scale changes
the best assignment. Holes, surplus fragments and several components do need one; it is found by letting the rounded
positions slide over the free slots. Components are placed one after the other, the largest first.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from jigsync.sync.graph import Floats, Ints
from jigsync.values.layout import Grid

EXACT_LIMIT: Final = 1200
"""Fragments up to which the assignment is optimal; beyond, fragments alone on their nearest slot stay there and the
others are assigned among what is left."""

_WIDEST: Final = 4
"""A layout that is this many times wider than the grid is no layout: it is centred."""


def assign(
    xy: Floats,
    components: Ints,
    grid: Grid,
    *,
    anchored: NDArray[np.bool_] | None = None,
    fixed: Ints | None = None,
) -> Ints:
    """Slots of all fragments, -1 for those that found none.

    Args:
        xy: (N, 2) positions in cells, x right, y down; every component up to a shift unless it is anchored.
        components: (N,), 0 the largest.
        anchored: (C,) components whose positions are absolute; None for none.
        fixed: (N,) slots given beforehand, -1 for free fragments; None for none.

    Shapes: -> (N,).
    """
    slots = np.full(len(xy), -1, dtype=np.int64) if fixed is None else np.array(fixed, dtype=np.int64)
    given = slots >= 0
    for component in range(int(components.max(initial=-1)) + 1):
        members = np.flatnonzero((components == component) & ~given)
        taken = np.zeros(grid.size, dtype=bool)
        taken[slots[slots >= 0]] = True
        free = np.flatnonzero(~taken)
        if len(members) == 0 or len(free) == 0:
            continue
        own = xy[members]
        if anchored is None or not anchored[component]:
            own = own + _shift(own, free, grid)
        slots[members] = _hungarian(own, free, grid)
    return slots


def cells_xy(slots: Ints, grid: Grid) -> Floats:
    """(M, 2) centres (x, y) of slots in cells."""
    row, col = np.divmod(slots, grid.cols)
    return np.stack([col, row], axis=-1).astype(np.float64)


def _shift(xy: Floats, free: Ints, grid: Grid) -> Floats:
    """(2,) the shift under which most rounded positions fall on different free slots."""
    centre = cells_xy(free, grid).mean(axis=0) - xy.mean(axis=0)
    if len(xy) == len(free):
        return np.asarray(centre)
    from scipy.signal import correlate

    # The part below one cell is the circular mean; of whole cells all are tried at once, by correlation.
    phase = np.angle(np.exp(2j * np.pi * xy).mean(axis=0)) / (2 * np.pi)
    rounded = np.rint(xy - phase).astype(np.int64)
    low, high = rounded.min(axis=0), rounded.max(axis=0)
    if np.any(high - low > _WIDEST * np.array([grid.cols, grid.rows])):
        return np.asarray(centre)
    own = np.zeros(high[::-1] - low[::-1] + 1)
    own[rounded[:, 1] - low[1], rounded[:, 0] - low[0]] = 1.0
    is_free = np.zeros(grid.shape)
    is_free[np.divmod(free, grid.cols)] = 1.0
    hits = np.rint(correlate(is_free, own, mode="full"))
    # Entry (0, 0) of the full correlation puts the last row and column of `own` onto the first slot.
    # Of equally good shifts the first: into a corner, which leaves the most room for the other components.
    rows, cols = np.nonzero(hits == hits.max())
    return np.asarray(np.array([cols[0], rows[0]]) - high - phase)


def _hungarian(xy: Floats, free: Ints, grid: Grid) -> Ints:
    """(M,) slots among `free`, -1 for the fragments that are left over."""
    slots = np.full(len(xy), -1, dtype=np.int64)
    rest, left = np.arange(len(xy)), free
    if len(xy) > EXACT_LIMIT:
        slots = _alone(xy, free, grid)
        rest = np.flatnonzero(slots < 0)
        left = np.setdiff1d(free, slots)
    cells = cells_xy(left, grid)
    distance = np.sum(xy[rest] ** 2, axis=1)[:, None] + np.sum(cells**2, axis=1) - 2 * xy[rest] @ cells.T
    # Round-off must not choose between equally good slots in one gauge and not in another.
    rows, cols = linear_sum_assignment(np.round(distance, 9))
    slots[rest[rows]] = left[cols]
    return slots


def _alone(xy: Floats, free: Ints, grid: Grid) -> Ints:
    """(M,) the nearest slot of every fragment that is nearest to it, -1 for the others."""
    nearest = np.rint(xy).astype(np.int64)
    inside = np.all((nearest >= 0) & (nearest < (grid.cols, grid.rows)), axis=1)
    slot = np.where(inside, nearest[:, 1] * grid.cols + nearest[:, 0], -1)
    slot[~np.isin(slot, free)] = -1
    off = np.sum((xy - nearest) ** 2, axis=1)
    order = np.lexsort((off, slot))
    loser: NDArray[np.bool_] = np.concatenate([[False], np.diff(slot[order]) == 0])
    slot[order[loser]] = -1
    return np.asarray(slot, dtype=np.int64)
