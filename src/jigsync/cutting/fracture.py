"""Stage 2, fracture: a conjugate tessellation.

Vertices sit at (jP, iP), interior ones jittered by U(-Vj, Vj). The chord a -> b of every internal edge is displaced
along its unit normal n:

    x(t) = a + t (b - a) + n sum_k a_k sin(k pi t),   a_k ~ N(0, (A/k)^2),   k = 1..K

Both neighbours of an edge get the same sampled points. A curve that crosses another one, or leaves the container of
one of its two cells, is drawn again; after `PATIENCE` draws its amplitudes shrink, which always ends: straight chords
never cross, because the jitter is at most an eighth of a cell.

Settled here, open in the paper: K = 4; Vj = 0 at A = 0 and A/2 otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from jigsync.cutting.options import HARMONICS, CutOptions
from jigsync.cutting.raster import snap

SEGMENTS: Final = 48
"""Segments a curve: at K = 4 the sagitta of one is below 0.1 px at a cell of 128."""
CHUNK: Final = 8
"""Segments whose common bounding box is tested first."""
PATIENCE: Final = 30
REACH: Final = 2.6
"""Curves whose chords' midpoints are further apart than this many cells cannot meet within their containers."""

Curves = NDArray[np.float64]


@dataclass(frozen=True)
class Tessellation:
    """Curves between neighbouring vertices.

    Shapes: across (rows + 1, cols, T + 1, 2) left to right, down (rows, cols + 1, T + 1, 2) top to bottom; (x, y) in
    canvas pixels, T segments.
    """

    across: Curves
    down: Curves

    def outline(self, row: int, col: int) -> NDArray[np.float64]:
        """The closed curve around a cell, clockwise as displayed, every point once.

        Shapes: -> (4 T, 2).
        """
        return np.concatenate(
            [
                self.across[row, col, :-1],
                self.down[row, col + 1, :-1],
                self.across[row + 1, col, :0:-1],
                self.down[row, col, :0:-1],
            ]
        )


def tessellate(options: CutOptions, rng: np.random.Generator) -> Tessellation:
    """Draws the curves of a whole canvas."""
    rows, cols, cell = options.grid.rows, options.grid.cols, options.cell
    amplitude = options.shape_px
    y, x = np.meshgrid(np.arange(rows + 1) * float(cell), np.arange(cols + 1) * float(cell), indexing="ij")
    vertices = np.stack([x, y], axis=-1)
    if amplitude > 0:
        vertices[1:-1, 1:-1] += rng.uniform(-amplitude / 2, amplitude / 2, vertices[1:-1, 1:-1].shape)
    vertices = snap(vertices)
    start = np.concatenate([vertices[:, :-1].reshape(-1, 2), vertices[:-1, :].reshape(-1, 2)])
    end = np.concatenate([vertices[:, 1:].reshape(-1, 2), vertices[1:, :].reshape(-1, 2)])
    n_across = (rows + 1) * cols
    if amplitude > 0:
        curves = _draw_all(options, start, end, n_across, rng)
    else:
        curves = np.stack([start, end], axis=1)
    points = curves.shape[1]
    return Tessellation(
        curves[:n_across].reshape(rows + 1, cols, points, 2), curves[n_across:].reshape(rows, cols + 1, points, 2)
    )


def _draw_all(
    options: CutOptions, start: NDArray[np.float64], end: NDArray[np.float64], n_across: int, rng: np.random.Generator
) -> Curves:
    rows, cols = options.grid.shape
    inner_across = np.ones((rows + 1, cols), dtype=bool)
    inner_across[[0, -1]] = False
    inner_down = np.ones((rows, cols + 1), dtype=bool)
    inner_down[:, [0, -1]] = False
    inner = np.concatenate([inner_across.ravel(), inner_down.ravel()])
    curves = _curves(start, end, np.zeros((len(start), HARMONICS)))
    low, high = _bounds(options, n_across)
    pairs = _near_pairs((start + end) / 2, REACH * options.cell)
    draws = np.zeros(len(start), dtype=np.int64)
    redraw = np.flatnonzero(inner)
    while len(redraw):
        draws[redraw] += 1
        scale = options.shape_px * 0.9 ** np.maximum(0, draws[redraw] - PATIENCE)
        sigma = scale[:, None] / np.arange(1, HARMONICS + 1)
        curves[redraw] = _curves(start[redraw], end[redraw], rng.normal(0.0, 1.0, sigma.shape) * sigma)
        bad = np.zeros(len(start), dtype=bool)
        fresh = np.zeros(len(start), dtype=bool)
        fresh[redraw] = True
        outside = (curves[redraw] < low[redraw, None]) | (curves[redraw] > high[redraw, None])
        bad[redraw] = outside.any(axis=(1, 2))
        check = pairs[fresh[pairs].any(axis=1) & ~bad[pairs].any(axis=1)]
        crossed = check[_crossing(curves, check)]
        # Of two curves that cross, the one drawn in this round gives way; of two fresh ones, the later.
        loser = np.where(fresh[crossed[:, 1]], crossed[:, 1], crossed[:, 0])
        # A fresh straight chord can be blocked by an old bulge: the old one gives way in its turn.
        stuck = draws[loser] % PATIENCE == 0
        other = np.where(loser == crossed[:, 0], crossed[:, 1], crossed[:, 0])
        loser = np.concatenate([loser, other[stuck]])
        bad[loser] = True
        redraw = np.flatnonzero(bad & inner)
    return curves


def _curves(start: NDArray[np.float64], end: NDArray[np.float64], harmonics: NDArray[np.float64]) -> Curves:
    """Shapes: start, end (E, 2), harmonics (E, K) -> (E, T + 1, 2), ends exact."""
    t = np.arange(SEGMENTS + 1) / SEGMENTS
    k = np.arange(1, HARMONICS + 1)
    chord = end - start
    normal = np.stack([-chord[:, 1], chord[:, 0]], axis=1) / np.linalg.norm(chord, axis=1, keepdims=True)
    along = harmonics @ np.sin(np.pi * k[:, None] * t)
    points = start[:, None] + t[None, :, None] * chord[:, None] + along[..., None] * normal[:, None]
    points[:, 0], points[:, -1] = start, end
    return snap(points)


def _bounds(options: CutOptions, n_across: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rectangle in which a curve lies inside the containers of both cells it borders, cut to the canvas."""
    rows, cols, cell, margin = options.grid.rows, options.grid.cols, options.cell, options.margin
    i, j = np.meshgrid(np.arange(rows + 1), np.arange(cols), indexing="ij")
    across_low = np.stack([j * cell - margin, i * cell - margin], axis=-1).reshape(-1, 2)
    across_high = np.stack([(j + 1) * cell + margin, i * cell + margin], axis=-1).reshape(-1, 2)
    i, j = np.meshgrid(np.arange(rows), np.arange(cols + 1), indexing="ij")
    down_low = np.stack([j * cell - margin, i * cell - margin], axis=-1).reshape(-1, 2)
    down_high = np.stack([j * cell + margin, (i + 1) * cell + margin], axis=-1).reshape(-1, 2)
    low = np.maximum(np.concatenate([across_low, down_low]), 0.0)
    high = np.minimum(np.concatenate([across_high, down_high]), [cols * cell, rows * cell])
    assert len(across_low) == n_across
    return low.astype(np.float64), high.astype(np.float64)


def _near_pairs(middles: NDArray[np.float64], reach: float) -> NDArray[np.int64]:
    pairs = cKDTree(middles).query_pairs(reach, p=np.inf, output_type="ndarray")
    return np.asarray(pairs[np.lexsort(pairs.T[::-1])], dtype=np.int64)


def _crossing(curves: Curves, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which pairs of curves properly cross. Exact: on the snap lattice every product below is a small integer.

    Shapes: curves (E, T + 1, 2), pairs (Q, 2) -> (Q,).
    """
    chunks = np.stack([curves[:, c : c + CHUNK + 1] for c in range(0, SEGMENTS, CHUNK)], axis=1)
    low, high = chunks.min(axis=2), chunks.max(axis=2)
    whole_low, whole_high = low.min(axis=1), high.max(axis=1)
    a, b = pairs.T
    near = ((whole_low[a] <= whole_high[b]) & (whole_low[b] <= whole_high[a])).all(axis=1)
    which = np.flatnonzero(near)
    a, b = a[which], b[which]
    overlap = (low[a][:, :, None] <= high[b][:, None]) & (low[b][:, None] <= high[a][:, :, None])
    pair, ca, cb = np.nonzero(overlap.all(axis=-1))
    p, q = chunks[a[pair], ca], chunks[b[pair], cb]
    hit = _segments_cross(p, q).any(axis=(1, 2))
    out = np.zeros(len(pairs), dtype=bool)
    out[which[pair[hit]]] = True
    return out


def _segments_cross(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Shapes: p, q (B, C + 1, 2) -> (B, C, C), proper crossings only (a shared end is none)."""

    def side_of(line: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shapes: (B, C + 1, 2), (B, D, 2) -> (B, C, D): sign tells the side of the line's segment."""
        a, d = line[:, :-1, None], (line[:, 1:] - line[:, :-1])[:, :, None]
        v = points[:, None] - a
        return np.asarray(np.sign(d[..., 0] * v[..., 1] - d[..., 1] * v[..., 0]))

    q_about_p = side_of(p, q)
    p_about_q = side_of(q, p)
    apart_q = q_about_p[:, :, :-1] * q_about_p[:, :, 1:] < 0
    apart_p = np.swapaxes(p_about_q[:, :, :-1] * p_about_q[:, :, 1:] < 0, 1, 2)
    return np.asarray(apart_q & apart_p)
