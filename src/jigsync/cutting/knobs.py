"""Classic jigsaw pieces: a grid of cells whose inner edges carry a knob each, to a random side.

A knob is three cubic Bezier curves, the shape of the well-known free jigsaw generators: along the edge to a narrow
neck, around the head, and back. Positions and sizes scatter by a few percent of the cell.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.fracture import Tessellation
from jigsync.cutting.masks import covered
from jigsync.cutting.pieces import Pieces, covered_pieces
from jigsync.cutting.raster import snap
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid

SEGMENTS: Final = 24
"""Of each of the three curves."""
TAB: Final = 0.1
"""Half width of the neck, a third of the control points' height; of the shorter side of a cell."""
SCATTER: Final = 0.04
LONGEST: Final = 3.0
"""A cell may be at most so many times as long as wide."""
ALWAYS: Final = 3
"""So few pieces may stand in one row."""


def knob_grid(shape: tuple[int, int], pieces: int) -> Grid:
    """The grid of so many cells that are as square as they can be; OptionError when they are strips."""
    height, width = shape
    grids = [Grid(rows, pieces // rows) for rows in range(1, pieces + 1) if pieces % rows == 0]
    if pieces > ALWAYS:
        grids = [grid for grid in grids if min(grid.shape) > 1]
    longest, grid = min(((_longest(grid, shape), grid) for grid in grids), default=(np.inf, None))
    if grid is None or longest > LONGEST:
        raise OptionError(
            f"{pieces} jigsaw pieces do not fill a picture of {width} x {height} pixels in rows and columns: take a"
            " number that has factors nearer to its shape."
        )
    return grid


def _longest(grid: Grid, shape: tuple[int, int]) -> float:
    ratio = shape[0] / grid.rows * grid.cols / shape[1]
    return max(ratio, 1 / ratio)


def cut_knobs(shape: tuple[int, int], count: int, rng: np.random.Generator) -> Pieces:
    """Divides a picture of `shape` (rows, columns) into a grid of jigsaw pieces."""
    grid = knob_grid(shape, count)
    pitch = shape[0] / grid.rows, shape[1] / grid.cols
    y, x = np.meshgrid(np.arange(grid.rows + 1) * pitch[0], np.arange(grid.cols + 1) * pitch[1], indexing="ij")
    vertices = np.stack([x, y], axis=-1)
    across = _edges(vertices[:, :-1], vertices[:, 1:], min(pitch), rng, _inner(grid.rows + 1, grid.cols))
    down = _edges(vertices[:-1], vertices[1:], min(pitch), rng, _inner(grid.cols + 1, grid.rows).T)
    cells = Tessellation(across, down)
    masks = [covered(cells.outline(row, col)) for row, col in grid.cells()]
    return covered_pieces(masks, shape, grid, pitch)


def _inner(lines: int, length: int) -> NDArray[np.bool_]:
    inner = np.ones((lines, length), dtype=bool)
    inner[[0, -1]] = False
    return inner


def _edges(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    unit: float,
    rng: np.random.Generator,
    inner: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Shapes: start, end (R, C, 2), inner (R, C) -> (R, C, 3 SEGMENTS + 1, 2), straight where not inner."""
    shape = inner.shape
    chord = end - start
    length = np.linalg.norm(chord, axis=-1, keepdims=True)
    direction = chord / length
    normal = np.stack([-direction[..., 1], direction[..., 0]], axis=-1)
    a, b, c, d, e = rng.uniform(-SCATTER, SCATTER, (5, *shape))
    side = np.where(rng.integers(0, 2, shape) == 1, 1.0, -1.0) * inner
    middle = length[..., 0] / unit / 2
    whole = 2 * middle
    zero, neck = np.zeros(shape), TAB + c
    # Along the edge and away from it, in units of the shorter side.
    along = [
        zero,
        0.2 * whole,
        middle + b + d,
        middle - TAB + b,
        middle - 2 * TAB + b - d,
        middle + 2 * TAB + b - d,
        middle + TAB + b,
        middle + b + d,
        0.8 * whole,
        whole,
    ]
    away = [zero, a, c - TAB, neck, neck + 2 * TAB, neck + 2 * TAB, neck, c - TAB, e, zero]
    controls = np.stack([np.stack(along, axis=-1), np.stack(away, axis=-1)], axis=-1) * unit
    t = np.arange(SEGMENTS)[:, None] / SEGMENTS
    weights = np.concatenate([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3], axis=1)
    curve = np.concatenate([weights @ controls[..., k : k + 4, :] for k in (0, 3, 6)], axis=-2)
    points = (
        start[..., None, :]
        + curve[..., :1] * direction[..., None, :]
        + side[..., None, None] * curve[..., 1:] * normal[..., None, :]
    )
    return snap(np.concatenate([points, end[..., None, :]], axis=-2))
