"""Stage 4, erosion: every fragment on its own, after cutting, so that the two sides of a seam no longer agree.

    e(s) = max(0, eps_geo P (0.5 + eta(s))),   s in [0, 1) the normalised arc length

A boundary point goes inward along its normal by e(s); eta is periodic Perlin noise of 3 octaves in [-1, 1]. From
eps_geo = 0.10 on also min(3, Poisson(1)) bites: disks of radius U(0.03, 0.08) P centred on the eroded boundary.

Settled here, open in the paper: the first octave has 8 lattice points around the fragment (two a side), each further
one twice as many at half the amplitude; a fragment that falls apart keeps its largest part.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.raster import positive_winding, snap

OCTAVES: Final = 3
LATTICE: Final = 8
BITES_FROM: Final = 0.10
MAX_BITES: Final = 3


def perlin(s: NDArray[np.float64], lattice: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Periodic 1-D gradient noise of several octaves, in [-1, 1].

    One octave with slopes g in [-1, 1] is at most 1/2, so it is doubled; octaves are averaged with weights 1, 1/2, 1/4.

    Shapes: s (M,) in [0, 1) -> (M,).
    """
    total = np.zeros_like(s)
    weight = 0.0
    for octave in range(OCTAVES):
        count = lattice * 2**octave
        slope = rng.uniform(-1.0, 1.0, count)
        at = s * count
        left = np.floor(at).astype(np.int64)
        u = at - left
        blend = u * u * u * (u * (u * 6 - 15) + 10)
        a = slope[left % count] * u
        b = slope[(left + 1) % count] * (u - 1)
        total += 0.5**octave * 2 * (a + blend * (b - a))
        weight += 0.5**octave
    return total / weight


def resample(points: NDArray[np.float64], spacing: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A closed curve at even arc length.

    Shapes: points (M, 2) -> points (L, 2), s (L,) in [0, 1).
    """
    closed = np.concatenate([points, points[:1]])
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    count = max(16, int(np.ceil(length[-1] / spacing)))
    s = np.arange(count) / count
    at = s * length[-1]
    return np.stack([np.interp(at, length, closed[:, 0]), np.interp(at, length, closed[:, 1])], axis=1), s


def inward_normals(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit normals of a closed curve that runs clockwise as displayed.

    Shapes: (L, 2) -> (L, 2).
    """
    tangent = np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0)
    tangent /= np.maximum(np.hypot(*tangent.T), 1e-9)[:, None]
    return np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)


def erode(
    alpha: NDArray[np.uint8], outline: NDArray[np.float64], eps_geo: float, cell: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The eroded alpha.

    Shapes: alpha (H, W) uint8, outline (M, 2) as (x, y) in the same frame, clockwise -> (H, W) uint8.
    """
    if eps_geo <= 0:
        return alpha
    points, s = resample(outline, cell / 128)
    depth = np.maximum(0.0, eps_geo * cell * (0.5 + perlin(s, LATTICE, rng)))
    eroded = snap(points + depth[:, None] * inward_normals(points))
    out = np.minimum(alpha, positive_winding(eroded, *alpha.shape))
    if eps_geo >= BITES_FROM:
        for _ in range(min(MAX_BITES, int(rng.poisson(1.0)))):
            centre = eroded[int(rng.integers(len(eroded)))]
            out = _bite(out, centre, float(rng.uniform(0.03, 0.08)) * cell)
    return largest_part(out)


def _bite(alpha: NDArray[np.uint8], centre: NDArray[np.float64], radius: float) -> NDArray[np.uint8]:
    """Removes a disk; the rim is antialiased over one pixel."""
    y = np.arange(alpha.shape[0])[:, None] + 0.5 - centre[1]
    x = np.arange(alpha.shape[1])[None, :] + 0.5 - centre[0]
    keep = np.clip(np.sqrt(x * x + y * y) - radius + 0.5, 0.0, 1.0)
    return np.asarray(np.rint(alpha * keep), dtype=np.uint8)


def largest_part(alpha: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Alpha of the largest connected part: a fragment is one thing.

    Shapes: (H, W) -> (H, W).
    """
    count, labels, stats, _ = cv2.connectedComponentsWithStats((alpha > 0).astype(np.uint8), connectivity=4)
    if count <= 2:
        return alpha
    keep = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    return np.where(labels == keep, alpha, 0).astype(np.uint8)
