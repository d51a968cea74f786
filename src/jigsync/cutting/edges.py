"""Worn edges: what erosion takes off a piece, and where the picture's layer ends before the paper does.

    d       distance from a point to the piece's edge, p the edge's point nearest to it
    paper   ends at d = e(p),          e = erosion * size * (1 + eta / 2)
    layer   ends at d = e(p) + r(p),   r = rim * (1 + eta' + eta'' / 2), not below 0, on sides of a seam that show a rim

eta are periodic Perlin noises along the edge. The border of the picture wears like every edge and has no rim.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.erosion import largest_part, perlin

PER_SIZE: Final = 2
"""Lattice points of the noise along one piece's size."""
FINE: Final = 8
"""...and of the rim's fine noise."""
DEEPEST: Final = 0.6
"""Erosion stops at this share of a piece's own half width: something is always left."""
OWNED: Final = ((0, 1), (-1, 0), (0, -1), (1, 0), (-1, 1), (-1, -1), (1, -1), (1, 1))

Floats = NDArray[np.float32]


def wear(
    alpha: NDArray[np.uint8],
    depth: float,
    size: int,
    rng: np.random.Generator,
    rim: Floats | None,
    rim_rng: np.random.Generator,
) -> tuple[NDArray[np.uint8], Floats]:
    """The worn alpha, and how much of each pixel's paper still has its picture.

    Args:
        depth: mean depth of the erosion, px.
        rim: mean width of the rim at every edge point, px; see `edge_pixels`. None: no rims.

    Shapes: alpha (H, W), rim (H, W) -> (H, W) uint8, (H, W) in [0, 1].
    """
    eroded = np.zeros(alpha.shape, dtype=np.float32)
    faded = np.zeros(alpha.shape, dtype=np.float32)
    edge = np.ones(alpha.shape, dtype=np.uint8)
    contours, _ = cv2.findContours((alpha > 0).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    for contour in sorted(contours, key=len, reverse=True):
        x, y = contour[:, 0].T
        step = np.hypot(x - np.roll(x, 1), y - np.roll(y, 1))
        length = max(float(step.sum()), 1.0)
        s = np.cumsum(step) / length % 1.0
        edge[y, x] = 0
        eroded[y, x] = depth * (1 + perlin(s, _lattice(PER_SIZE, length, size), rng) / 2)
        if rim is not None:
            wave = perlin(s, _lattice(PER_SIZE, length, size), rim_rng)
            wave += perlin(s, _lattice(FINE, length, size), rim_rng) / 2
            faded[y, x] = _softened(rim[y, x]) * np.maximum(0.0, 1 + wave)
    distance, nearest = cv2.distanceTransformWithLabels(
        edge, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    at = edge == 0
    of = np.zeros((3, int(nearest.max()) + 1), dtype=np.float32)
    of[:, nearest[at]] = alpha[at] / np.float32(255), eroded[at], faded[at]
    # The pixel on the edge is covered by its alpha: the edge runs so far outside of its centre.
    inside = distance + of[0][nearest] - np.float32(0.5)
    paper = inside - np.minimum(of[1][nearest], np.float32(DEEPEST) * inside.max())
    left = np.clip(paper + np.float32(0.5), 0.0, 1.0)
    worn = np.minimum(alpha, np.rint(left * np.float32(255)).astype(np.uint8))
    layer = np.clip(paper - of[2][nearest] + np.float32(0.5), 0.0, 1.0) / np.maximum(left, np.float32(1e-6))
    return largest_part(worn), np.minimum(layer, np.float32(1.0))


def _lattice(per_size: int, length: float, size: int) -> int:
    return max(3, round(per_size * length / size))


def _softened(width: Floats, reach: int = 4) -> Floats:
    """A closed run of widths, averaged over 2 reach + 1 points: rims end in a taper."""
    around = np.concatenate([width[-reach:], width, width[:reach]]) if len(width) > reach else np.tile(width, 3)
    smooth = np.convolve(around, np.full(2 * reach + 1, 1 / (2 * reach + 1)), mode="same")
    start = (len(around) - len(width)) // 2
    return smooth[start : start + len(width)].astype(np.float32)


def across(owner: NDArray[np.int32], piece: int) -> NDArray[np.int32]:
    """Who lies across the edge of a piece, at every pixel: another owner here or beside it, or -1.

    Shapes: owner (H, W) -> (H, W).
    """
    other = np.where(owner == piece, -1, owner).astype(np.int32)
    padded = np.pad(other, 1, constant_values=-1)
    for d_row, d_col in OWNED:
        beside = padded[1 + d_row : padded.shape[0] - 1 + d_row, 1 + d_col : padded.shape[1] - 1 + d_col]
        other = np.where(other < 0, beside, other)
    return other
