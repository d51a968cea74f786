"""Turns: the group Z4, and every sign in JigSync.

    one turn = np.rot90(pixels, 1) = 90 degrees counter-clockwise as displayed
    R(1)     = [[0, 1], [-1, 0]]   acting on (x, y), x right, y DOWN

No other module may write a rotation matrix, a bearing's vector or a turned cell: they ask here.

Convention: turns are ints mod 4. `canvas_from_frag = (turns, t)` means x_canvas = R(turns) x_frag + t, so the
upright pixels of a stored fragment are `np.rot90(stored, turns)`. The generator's `applied_turns` is the inverse.
Bearings E, N, W, S = 0, 1, 2, 3; a frame turned by k moves a bearing by k and an eight-way sector by 2k.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ORDER: Final = 4
"""Number of turns in a full revolution."""

E: Final = 0
N: Final = 1
W: Final = 2
S: Final = 3

_MATRICES: Final = np.array(
    [[[1, 0], [0, 1]], [[0, 1], [-1, 0]], [[-1, 0], [0, -1]], [[0, -1], [1, 0]]], dtype=np.int64
)
_BEARING_XY: Final = np.array([[1, 0], [0, -1], [-1, 0], [0, 1]], dtype=np.int64)
_MATRICES.setflags(write=False)
_BEARING_XY.setflags(write=False)


def compose(a: int, b: int) -> int:
    """a after b: R(a) R(b) = R(a + b)."""
    return (a + b) % ORDER


def inverse(a: int) -> int:
    """R(-a) = R(a)^T."""
    return -a % ORDER


def between(a: int, b: int) -> int:
    """Relative turns r = b - a, so that compose(a, r) == b: `i_from_j` turns of frames a = k_i, b = k_j."""
    return (b - a) % ORDER


def matrix(turns: int) -> NDArray[np.int64]:
    """R(turns), a read-only (2, 2) integer matrix on (x, y-down)."""
    return np.asarray(_MATRICES[turns % ORDER])


def act(turns: int, xy: NDArray[Any]) -> NDArray[Any]:
    """R(turns) applied to vectors.

    Shapes: xy (..., 2) -> (..., 2), the dtype kept.
    """
    x, y = xy[..., 0], xy[..., 1]
    k = turns % ORDER
    if k == 0:
        return np.array(xy)
    if k == 1:
        return np.stack([y, -x], axis=-1)
    if k == 2:
        return -xy
    return np.stack([-y, x], axis=-1)


def turn_pixels(pixels: NDArray[Any], turns: int) -> NDArray[Any]:
    """Pixels turned counter-clockwise, contiguous. Upright = turn_pixels(stored, truth turns).

    Shapes: (H, W, ...) -> (H, W, ...) or (W, H, ...).
    """
    return np.ascontiguousarray(np.rot90(pixels, turns))


def bearing_xy(bearing: int) -> NDArray[np.int64]:
    """Unit vector (x, y-down) of bearing E, N, W, S = 0..3."""
    return np.asarray(_BEARING_XY[bearing % ORDER])


def bearing_offset(bearing: int) -> tuple[int, int]:
    """(d_row, d_col) of one step along a bearing."""
    x, y = _BEARING_XY[bearing % ORDER]
    return int(y), int(x)


def bearing_of_offset(d_row: int, d_col: int) -> int:
    """The bearing of a unit step; raises ValueError for anything else."""
    for bearing in range(ORDER):
        if bearing_offset(bearing) == (d_row, d_col):
            return bearing
    raise ValueError(f"({d_row}, {d_col}) is not a unit step")


def turn_bearing(bearing: int, turns: int) -> int:
    """A bearing read in a frame with canvas turns k points along b + k in the canvas."""
    return (bearing + turns) % ORDER


def reverse(bearing: int, relative: int) -> tuple[int, int]:
    """The measurement (b, r) of (i, j) seen as the measurement of (j, i): (b + 2 - r, -r), an involution."""
    return (bearing + 2 - relative) % ORDER, -relative % ORDER


def turned_shape(shape: tuple[int, int], turns: int) -> tuple[int, int]:
    """(rows, cols) of a grid or image after a global turn; odd turns swap them."""
    return (shape[1], shape[0]) if turns % 2 else shape


def turn_cells(cells: NDArray[Any], shape: tuple[int, int], turns: int) -> NDArray[Any]:
    """Cells of a grid turned as a whole, the way np.rot90 moves array entries.

    t -> R(g) t + c with c chosen so that the turned grid starts at (0, 0) again.

    Shapes: cells (..., 2) as (row, col) in a grid of `shape` -> (..., 2) in a grid of turned_shape(shape, turns).
    """
    rows, cols = shape
    row, col = cells[..., 0], cells[..., 1]
    k = turns % ORDER
    if k == 0:
        return np.array(cells)
    if k == 1:
        return np.stack([cols - 1 - col, row], axis=-1)
    if k == 2:
        return np.stack([rows - 1 - row, cols - 1 - col], axis=-1)
    return np.stack([col, rows - 1 - row], axis=-1)


def turn_cell(cell: tuple[int, int], shape: tuple[int, int], turns: int) -> tuple[int, int]:
    """`turn_cells` of one cell."""
    row, col = turn_cells(np.array(cell), shape, turns)
    return int(row), int(col)


def phase(turns: NDArray[Any]) -> NDArray[np.complex128]:
    """i^turns: the point of the unit circle that stands for a turn in synchronization.

    Convention: z_i = phase(k_i) and H_ij = w_ij * phase(-r_ij) with r_ij = between(k_i, k_j).
    """
    table = np.array([1, 1j, -1, -1j], dtype=np.complex128)
    return np.asarray(table[np.asarray(turns) % ORDER])


def turns_of_phase(z: NDArray[np.complex128]) -> NDArray[np.int64]:
    """The turn nearest to each complex number's angle."""
    return np.asarray(np.rint(np.angle(z) / (np.pi / 2)), dtype=np.int64) % ORDER
