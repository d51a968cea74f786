"""Which way a fragment was turned after it was compressed, read from JPEG's lattice alone: no content, nothing trained.

JPEG rounds the coefficient (u, v) of every 8 x 8 block of luminance to a multiple of q_uv, and the table q is not
symmetric. Decompressed pixels still lie near that lattice; turned by 90 or 270 degrees they lie near the lattice of
the transposed table. With d the distance of a coefficient to the nearest multiple, the table that fits is that of

    max over qualities   sum log( (1 - e) q N(d; 0, s^2) + e )         against the uniform distribution of d
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BLOCK: Final = 8
QUALITIES: Final = tuple(range(40, 96))
NOISE: Final = 0.5
"""s: pixels were rounded to integers, in three channels."""
OUTLIERS: Final = 0.05
MOST_BLOCKS: Final = 64

LUMINANCE: Final[Floats] = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ],
    dtype=np.float64,
)
"""The table of the standard (ITU-T T.81, K.1) at quality 50, rows are vertical frequencies."""


def table_of(quality: int) -> Floats:
    """The customary scaling of the table. Shapes: -> (8, 8)."""
    scale = 5000 / quality if quality < 50 else 200 - 2 * quality
    return np.asarray(np.clip(np.floor((LUMINANCE * scale + 50) / 100), 1, 255))


def says_odd(pixels: NDArray[np.uint8]) -> bool:
    """Was it turned by 90 or 270 degrees since it was compressed? Shapes: (H, W, 4) on JPEG's own lattice."""
    coefficients = _coefficients(pixels)
    if not len(coefficients):
        return False
    tables = [table_of(quality) for quality in QUALITIES]
    as_is, turned = (max(_fit(coefficients, q.T if odd else q) for q in tables) for odd in (False, True))
    return turned > as_is


def _coefficients(pixels: NDArray[np.uint8]) -> Floats:
    """The cosine transforms of opaque blocks that show something. Shapes: -> (B, 8, 8)."""
    rows, cols = (side // BLOCK for side in pixels.shape[:2])
    blocks = pixels[: rows * BLOCK, : cols * BLOCK].reshape(rows, BLOCK, cols, BLOCK, 4).swapaxes(1, 2)
    blocks = blocks.reshape(-1, BLOCK, BLOCK, 4)
    light = blocks[(blocks[..., 3] == 255).all(axis=(1, 2))][..., :3] @ np.array([0.299, 0.587, 0.114])
    light = light[np.argsort(-light.std(axis=(1, 2)), kind="stable")[:MOST_BLOCKS]]
    k = np.arange(BLOCK)
    basis = np.sqrt(2 / BLOCK) * np.cos(np.pi / BLOCK * np.outer(k, k + 0.5))
    basis[0] /= np.sqrt(2)
    return np.asarray(basis @ (light - 128) @ basis.T)


def _fit(coefficients: Floats, q: Floats) -> float:
    d = coefficients - q * np.rint(coefficients / q)
    near = q / (NOISE * np.sqrt(2 * np.pi)) * np.exp(-0.5 * np.square(d / NOISE))
    return float(np.log((1 - OUTLIERS) * near + OUTLIERS).sum())
