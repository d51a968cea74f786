"""Tearing: which piece every point of the picture belongs to.

    owner(x) = argmin_k |x + u(x) - site_k|

Sites come by best-candidate sampling. u is smooth noise: 0.12 of the piece's size at a wavelength of 0.6 of its size,
halved twice in both, and one pixel at six pixels. Every piece is connected: a stray island goes to the neighbour that
surrounds it.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.nearest import NearestSite
from jigsync.cutting.pieces import SAMPLES, Owner, Pieces, counted_masks, join_islands, seams

AMPLITUDE: Final = 0.12
WAVELENGTH: Final = 0.6
OCTAVES: Final = 3
FIBRE: Final = 1.0, 6.0
"""Amplitude and wavelength of the paper's own roughness, px."""
CANDIDATES: Final = 32
COARSE: Final = 2
"""Pixels between two points at which the noise is summed up, and owners are first asked for."""

Floats = NDArray[np.float32]


def tear(shape: tuple[int, int], count: int, size: int, rng: np.random.Generator) -> Pieces:
    """Divides a picture of `shape` (rows, columns) into `count` torn pieces of about size^2 pixels."""
    sites = draw_sites(shape, count, rng)
    shift = displacement(shape, size, rng)
    nearest = NearestSite.of(sites, shape, size, reach=2 * AMPLITUDE * size + FIBRE[0])
    owner = _owner(shape, shift, nearest)
    rows, cols = np.nonzero(seams(owner))
    x, y = _sample_points(shift, rows, cols)
    samples = nearest(x.ravel(), y.ravel()).reshape(x.shape).T
    boxes = join_islands(owner, count)
    # An island's pixels have another owner now.
    mixed = (samples != owner[rows, cols][:, None]).any(axis=1)
    return Pieces(owner, counted_masks(owner, boxes, rows[mixed], cols[mixed], samples[mixed]))


def draw_sites(shape: tuple[int, int], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Best-candidate sampling: of 32 points, the one farthest from all sites and, twice, from the border.

    A border counts like the mirror image of the point itself: the pieces along it get as large as the others.

    Shapes: -> (count, 2) as (x, y), pixels.
    """
    extent = np.array(shape[::-1], dtype=np.float64)
    sites = np.empty((count, 2))
    for k in range(count):
        points = rng.random((CANDIDATES, 2)) * extent
        reach = 2 * np.minimum(points, extent - points).min(axis=1)
        if k:
            apart = points[:, None] - sites[:k]
            reach = np.minimum(reach, np.sqrt((apart * apart).sum(axis=-1).min(axis=1)))
        sites[k] = points[np.argmax(reach)]
    return sites


def displacement(shape: tuple[int, int], size: int, rng: np.random.Generator) -> Floats:
    """u of every pixel's centre. Shapes: -> (H, W, 2) as (x, y), pixels."""
    rows, cols = (-(-side // COARSE) for side in shape)
    total = np.zeros((rows, cols, 2), dtype=np.float32)
    waves = [(AMPLITUDE * size * 0.5**k, WAVELENGTH * size * 0.5**k) for k in range(OCTAVES)]
    for amplitude, wavelength in [*waves, FIBRE]:
        total += np.float32(amplitude) * smooth_noise((rows, cols), wavelength / COARSE, rng)
    wide = cv2.resize(total, (cols * COARSE, rows * COARSE), interpolation=cv2.INTER_LINEAR)
    return np.asarray(wide[: shape[0], : shape[1]])


def smooth_noise(shape: tuple[int, int], wavelength: float, rng: np.random.Generator) -> Floats:
    """Two channels of U(-1, 1) on a lattice of the wavelength's spacing, joined by cubics.

    Shapes: -> (H, W, 2) float32.
    """
    spacing = max(1, round(wavelength))
    rows, cols = (-(-side // spacing) + 2 for side in shape)
    lattice = rng.uniform(-1.0, 1.0, (rows, cols, 2)).astype(np.float32)
    top, left = (int(k) for k in rng.integers(0, spacing, 2))
    wide = cv2.resize(lattice, (cols * spacing, rows * spacing), interpolation=cv2.INTER_CUBIC)
    return np.asarray(wide[top : top + shape[0], left : left + shape[1]])


def _owner(shape: tuple[int, int], shift: Floats, nearest: NearestSite) -> Owner:
    """The owner of every pixel's centre: asked of every second pixel first, and of all pixels near seams."""
    some = shift[::COARSE, ::COARSE]
    rows, cols = (np.arange(0, side, COARSE, dtype=np.float32) + np.float32(0.5) for side in shape)
    rough = nearest((some[..., 0] + cols).ravel(), (some[..., 1] + rows[:, None]).ravel()).reshape(some.shape[:2])
    wide = (some.shape[1] * COARSE, some.shape[0] * COARSE)
    owner = np.ascontiguousarray(cv2.resize(rough, wide, interpolation=cv2.INTER_NEAREST)[: shape[0], : shape[1]])
    near = cv2.dilate(seams(rough), np.ones((3, 3), dtype=np.uint8))
    near = cv2.resize(near, wide, interpolation=cv2.INTER_NEAREST)[: shape[0], : shape[1]]
    y, x = np.nonzero(near)
    moved = shift[y, x]
    half = np.float32(0.5)
    owner[y, x] = nearest(x.astype(np.float32) + half + moved[:, 0], y.astype(np.float32) + half + moved[:, 1])
    return owner


def _sample_points(shift: Floats, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Displaced sample points of some pixels; the displacement is linear inside a pixel.

    The samples are a rank-1 lattice whose first point is the pixel's centre.

    Shapes: shift (H, W, 2), rows, cols (B,) -> x, y (SAMPLES, B).
    """
    k = np.arange(SAMPLES)
    dx = ((k / SAMPLES + 0.5) % 1 - 0.5).astype(np.float32)[:, None]
    dy = ((4 * k % SAMPLES / SAMPLES + 0.5) % 1 - 0.5).astype(np.float32)[:, None]
    height, width = shift.shape[:2]
    left, right = np.maximum(cols - 1, 0), np.minimum(cols + 1, width - 1)
    above, below = np.maximum(rows - 1, 0), np.minimum(rows + 1, height - 1)
    here = shift[rows, cols]
    by_x = (shift[rows, right] - shift[rows, left]) / (right - left)[:, None].astype(np.float32)
    by_y = (shift[below, cols] - shift[above, cols]) / (below - above)[:, None].astype(np.float32)
    x = (cols + np.float32(0.5) + here[:, 0]).astype(np.float32) + dx * (1 + by_x[:, 0]) + dy * by_y[:, 0]
    y = (rows + np.float32(0.5) + here[:, 1]).astype(np.float32) + dy * (1 + by_y[:, 1]) + dx * by_x[:, 1]
    return x, y
