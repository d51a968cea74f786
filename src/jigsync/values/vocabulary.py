"""The 192 relations of an ordered pair of fragments, in fragment i's presented frame.

    relation = 4 * bucket + relative turns          48 buckets x 4 turns = 192

With r the Chebyshev distance in cells, resolution falls with distance:

    near   r in {1, 2}   the exact (d_row, d_col)               buckets  0..23, row-major without (0, 0)
    mid    r in {3, 4}   eight-way sector                       buckets 24..31
    far    r in 5..7     eight-way sector                       buckets 32..39
           r >= 8        eight-way sector                       buckets 40..47

Sector s is centred on s * 45 degrees, E = 0, N = 2, W = 4, S = 6; borders lie at odd multiples of 22.5 degrees,
which no integer vector hits. A pair with canvas poses (k_i, t_i), (k_j, t_j) has relative turns k_j - k_i and the
offset R(-k_i)(t_j - t_i). Three tables follow from that geometry:

    turn_i(a)   storing i turned by a:   offset -> R(a) offset, r -> r + a;   a sector moves by 2a
    turn_j(a)   storing j turned by a:   r -> r - a
    REVERSE     the pair (j, i):         offset -> -R(-r) offset, r -> -r;    total and self-inverse
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.sides import touching_side

VERSION: Final = "tiered-192.1"
"""Changes whenever a relation changes its number or its meaning; weights and caches carry it."""

NEAR, MID, FAR = 0, 1, 2
TIER_NAMES: Final = ("near", "mid", "far")
SECTORS: Final = 8
NEAR_BUCKETS: Final = 24
BUCKETS: Final = 48
RELATIONS: Final = BUCKETS * z4.ORDER
UNIT_RELATIONS: Final = 16
"""Relations of direct neighbours: 4 bearings x 4 relative turns."""
OTHERS: Final = RELATIONS - UNIT_RELATIONS
"""Relations in which two fragments are not direct neighbours: 176."""

_RINGS: Final = ((3, 4), (5, 7), (8, -1))
"""Chebyshev bands of the sector buckets in bucket order; -1 is open."""


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _sector_steps() -> NDArray[np.int64]:
    """(8, 2): an integer vector (x, y) on the centre line of each sector."""
    steps = []
    for bearing in range(z4.ORDER):
        steps += [z4.bearing_xy(bearing), z4.bearing_xy(bearing) + z4.bearing_xy(bearing + 1)]
    return np.array(steps)


_STEPS: Final = _frozen(_sector_steps())
SECTOR_XY: Final[NDArray[np.float64]] = _frozen(_STEPS / np.linalg.norm(_STEPS, axis=1, keepdims=True))
"""(8, 2) unit vectors (x, y) of the sectors."""

NEAR_OFFSETS: Final[NDArray[np.int64]] = _frozen(
    np.array([(row, col) for row in range(-2, 3) for col in range(-2, 3) if (row, col) != (0, 0)])
)
"""(24, 2): the exact (d_row, d_col) of each near bucket."""

TIER: Final[NDArray[np.int64]] = _frozen(np.repeat([NEAR, MID, FAR], [NEAR_BUCKETS, SECTORS, 2 * SECTORS]))
"""(48,): NEAR, MID or FAR."""

BAND: Final[NDArray[np.int64]] = _frozen(
    np.concatenate(
        [np.repeat(np.abs(NEAR_OFFSETS).max(axis=1)[:, None], 2, axis=1), np.repeat(_RINGS, SECTORS, axis=0)]
    )
)
"""(48, 2): lowest and highest Chebyshev distance in the bucket; -1 means open."""


def sector_of(xy: NDArray[Any]) -> NDArray[np.int64]:
    """The sector of non-zero integer vectors.

    Shapes: (..., 2) as (x, y) -> (...,).
    """
    return np.asarray(np.argmax(np.asarray(xy, dtype=np.float64) @ SECTOR_XY.T, axis=-1), dtype=np.int64)


def bucket_of_offset(d_row: NDArray[Any], d_col: NDArray[Any]) -> NDArray[np.int64]:
    """The bucket of offsets in i's frame.

    Shapes: two integer arrays (...,) -> (...,); (0, 0) raises ValueError.
    """
    d_row, d_col = np.broadcast_arrays(np.asarray(d_row, dtype=np.int64), np.asarray(d_col, dtype=np.int64))
    r = np.maximum(np.abs(d_row), np.abs(d_col))
    if np.any(r == 0):
        raise ValueError("two fragments cannot share a cell: the offset (0, 0) has no relation")
    flat = 5 * (d_row + 2) + (d_col + 2)
    near = flat - (flat > 12)  # entry 12 of the 5 x 5 block is the skipped (0, 0)
    ring = (r >= _RINGS[1][0]).astype(np.int64) + (r >= _RINGS[2][0])
    apart = NEAR_BUCKETS + SECTORS * ring + sector_of(np.stack([d_col, d_row], axis=-1))
    return np.asarray(np.where(r <= 2, near, apart), dtype=np.int64)


def in_frame(
    turns_i: NDArray[Any] | int, d_row: NDArray[Any] | int, d_col: NDArray[Any] | int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Canvas offsets t_j - t_i read in i's presented frame: R(-k_i)(t_j - t_i) as (d_row, d_col).

    Shapes: broadcast together, (...,) -> two (...,).
    """
    turns, row, col = np.broadcast_arrays(np.asarray(turns_i) % z4.ORDER, np.asarray(d_row), np.asarray(d_col))
    canvas = np.stack([col, row], axis=-1).astype(np.int64)
    frame = np.empty_like(canvas)
    for k in range(z4.ORDER):
        frame[turns == k] = z4.act(z4.inverse(k), canvas[turns == k])
    return frame[..., 1], frame[..., 0]


def relation_of(
    d_row: NDArray[Any] | int, d_col: NDArray[Any] | int, turns_i: NDArray[Any] | int, turns_j: NDArray[Any] | int
) -> NDArray[np.int64]:
    """The relation of pairs placed in the canvas: cell_j - cell_i = (d_row, d_col), canvas turns k_i and k_j.

    Shapes: broadcast together, (...,) -> (...,).
    """
    relative = (np.asarray(turns_j) - np.asarray(turns_i)) % z4.ORDER
    row, col = in_frame(turns_i, d_row, d_col)
    return np.asarray(z4.ORDER * bucket_of_offset(row, col) + relative, dtype=np.int64)


def bucket(relation: NDArray[Any]) -> NDArray[np.int64]:
    """Bucket 0..47 of relations."""
    return np.asarray(relation) // z4.ORDER


def relative(relation: NDArray[Any]) -> NDArray[np.int64]:
    """Relative turns 0..3 of relations."""
    return np.asarray(relation) % z4.ORDER


def _members() -> NDArray[np.int64]:
    """(48, 2): one (d_row, d_col) inside every bucket."""
    rings = [_STEPS[:, ::-1] * low for low, _ in _RINGS]
    return np.concatenate([NEAR_OFFSETS, *rings])


def _turn_i_table() -> NDArray[np.int64]:
    # Storing i turned by a lowers its canvas turns by a, so an offset in its frame is read with canvas turns -a.
    member, every = _members(), np.arange(RELATIONS)
    row, col = member[bucket(every)].T
    table = [relation_of(row, col, -a, relative(every)) for a in range(z4.ORDER)]
    return np.array(table)


def _turn_j_table() -> NDArray[np.int64]:
    every = np.arange(RELATIONS)
    return np.array([z4.ORDER * bucket(every) + relative(every - a) for a in range(z4.ORDER)])


def _reverse_table() -> NDArray[np.int64]:
    # In i's frame i has canvas turns 0 and j has r; seen from j the offset is the opposite one.
    member, every = _members(), np.arange(RELATIONS)
    row, col = member[bucket(every)].T
    return relation_of(-row, -col, relative(every), 0)


def _unit_table() -> NDArray[np.int64]:
    table = np.empty((z4.ORDER, z4.ORDER), dtype=np.int64)
    for bearing in range(z4.ORDER):
        table[bearing] = relation_of(*z4.bearing_offset(bearing), 0, np.arange(z4.ORDER))
    return table


def _side_table() -> NDArray[np.int64]:
    table = np.empty((z4.ORDER, z4.ORDER), dtype=np.int64)
    for bearing in range(z4.ORDER):
        for turns in range(z4.ORDER):
            table[bearing, touching_side(bearing, turns)] = UNIT[bearing, turns]
    return table


TURN_I: Final[NDArray[np.int64]] = _frozen(_turn_i_table())
"""(4, 192): TURN_I[a, relation] is the relation after i is stored turned by a."""

TURN_J: Final[NDArray[np.int64]] = _frozen(_turn_j_table())
"""(4, 192): TURN_J[a, relation] is the relation after j is stored turned by a."""

REVERSE: Final[NDArray[np.int64]] = _frozen(_reverse_table())
"""(192,): the relation of (j, i); REVERSE[REVERSE] is the identity."""

UNIT: Final[NDArray[np.int64]] = _frozen(_unit_table())
"""(4, 4): UNIT[bearing, relative turns] of direct neighbours."""

UNIT_OF_SIDES: Final[NDArray[np.int64]] = _frozen(_side_table())
"""(4, 4): UNIT_OF_SIDES[a, b] when side a of i touches side b of j; reversing the pair transposes."""

IS_UNIT: Final[NDArray[np.bool_]] = _frozen(np.isin(np.arange(RELATIONS), UNIT))
"""(192,): is the relation one of the 16 of direct neighbours?"""


def _grid_offsets(grid: Grid) -> NDArray[np.int64]:
    """(M, 2): every non-zero (d_row, d_col) between two cells of the grid."""
    row, col = np.meshgrid(np.arange(1 - grid.rows, grid.rows), np.arange(1 - grid.cols, grid.cols), indexing="ij")
    offsets = np.stack([row.ravel(), col.ravel()], axis=-1)
    return offsets[np.any(offsets != 0, axis=1)]


def possible(grid: Grid, turns_i: int | None = None) -> NDArray[np.bool_]:
    """(192,): the relations that some two cells of the grid can have.

    With `turns_i` the canvas turns of i are known; without, a relation is possible when any of the four allows it.
    """
    offsets = _grid_offsets(grid)
    mask = np.zeros(BUCKETS, dtype=bool)
    for turns in range(z4.ORDER) if turns_i is None else (turns_i,):
        mask[bucket_of_offset(*in_frame(turns, offsets[:, 0], offsets[:, 1]))] = True
    return np.repeat(mask, z4.ORDER)


def nominal_xy(grid: Grid) -> NDArray[np.float64]:
    """(48, 2): the mean offset (x, y) of each bucket over all pairs of cells of the grid.

    Near buckets are exact. Sector buckets point along the sector's centre; their length is the mean projection
    onto it over the pairs of cells in the bucket's band, over all eight sectors at once so that turning the grid
    turns the table. A band that the grid does not reach gets its shortest length.
    """
    offsets = _grid_offsets(grid)
    xy = offsets[:, ::-1].astype(np.float64)
    pairs = (grid.rows - np.abs(offsets[:, 0])) * (grid.cols - np.abs(offsets[:, 1]))
    buckets = bucket_of_offset(offsets[:, 0], offsets[:, 1])
    out = np.empty((BUCKETS, 2))
    out[:NEAR_BUCKETS] = NEAR_OFFSETS[:, ::-1]
    for ring, (low, _) in enumerate(_RINGS):
        first = NEAR_BUCKETS + SECTORS * ring
        for parity in (0, 1):
            own = (buckets >= first) & (buckets < first + SECTORS) & ((buckets - first) % 2 == parity)
            along = np.sum(xy[own] * SECTOR_XY[buckets[own] - first], axis=1)
            shortest = low * float(np.linalg.norm(_STEPS[parity]))
            length = float(np.average(along, weights=pairs[own])) if np.any(own) else shortest
            out[first + parity : first + SECTORS : 2] = length * SECTOR_XY[parity::2]
    return out
