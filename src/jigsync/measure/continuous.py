"""How far a fragment is turned when it may be turned by any angle: the continuous head on the unary head's features.

A fragment is seen through a round window, so that corners tell nothing, in four quarter turns. View k says how likely
it is to be the one nearest to upright, z_k, and how far it still has to be turned, a vector v_k:

    p(angle) = sum_k softmax(z)_k  vonMises(angle - 90 k; direction of v_k, concentration |v_k|)

The angle is that of the turn, counter-clockwise as displayed, that makes it upright: 90 degrees are one turn of z4.
Turning the fragment by a quarter permutes the views and so moves p by 90 degrees, exactly.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, logsumexp

from jigsync.measure.unary import weights_sha256
from jigsync.measure.views import FRAGMENT, GREY, Views, four_turns
from jigsync.measure.weights import open_session, read_weights
from jigsync.values import z4

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-continuous/1"
SHIPPED: Final = "continuous.onnx"
STEPS: Final = 360
"""Angles at which the density is looked at for its maximum."""


def matrix(angle: NDArray[Any] | float) -> Floats:
    """R(angle) = cos(angle) R(0) + sin(angle) R(1), degrees. Shapes: (...) -> (..., 2, 2)."""
    radians = np.deg2rad(np.asarray(angle, dtype=np.float64))[..., None, None]
    return np.asarray(np.cos(radians) * z4.matrix(0) + np.sin(radians) * z4.matrix(1))


def round_views(rgb: NDArray[np.uint8], centre: tuple[float, float], side: float, angle: float) -> Views:
    """A round part of a picture as it looks when `angle` degrees more would make it upright, in its four turns.

    Resampled once: pixel x of the view shows the picture at centre + R(angle) x, after an isotropic blur that takes
    what the view cannot hold. Shapes: rgb (H, W, 3), centre (x, y) and side in its pixels -> (4, S, S, 3).
    """
    scale = side / FRAGMENT
    linear = scale * matrix(angle)
    middle = (FRAGMENT - 1) / 2
    move = np.column_stack([linear, np.array(centre) - 0.5 - linear @ np.array([middle, middle])])
    smooth = cv2.GaussianBlur(rgb, (0, 0), 0.5 * scale) if scale > 1 else rgb
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    view = cv2.warpAffine(smooth, move, (FRAGMENT, FRAGMENT), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
    y, x = np.indices((FRAGMENT, FRAGMENT)) - middle
    inside = np.hypot(x, y) < FRAGMENT / 2
    return four_turns(np.where(inside[..., None], np.asarray(view), np.uint8(GREY)))


def log_density(z: NDArray[Any], vectors: NDArray[Any], angle: NDArray[Any]) -> Floats:
    """log p(angle), per radian. Shapes: z (M, 4), vectors (M, 4, 2), angle (M, A) degrees -> (M, A)."""
    log_w = z - logsumexp(z, axis=1, keepdims=True)
    left = np.deg2rad(angle[:, None] - 90.0 * np.arange(z4.ORDER)[:, None])
    kappa = np.linalg.norm(vectors, axis=2)[..., None]
    dot = vectors[..., :1] * np.cos(left) + vectors[..., 1:] * np.sin(left)
    return np.asarray(logsumexp(log_w[..., None] + dot - kappa - np.log(2 * np.pi * i0e(kappa)), axis=1))


class ContinuousModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str, encoder_sha256: str) -> None:
        self._session = open_session(data, name, {"format": FORMAT, "encoder_sha256": encoder_sha256})

    def angles(self, features: NDArray[Any]) -> Floats:
        """The likeliest angle in [0, 360). Shapes: (M, 4, F + HEADS) -> (M,)."""
        wanted = {"z": (len(features), z4.ORDER), "vectors": (len(features), z4.ORDER, 2)}
        z, vectors = self._session.run(wanted, {"features": features.astype(np.float32)})
        grid = np.tile(np.arange(STEPS) * (360.0 / STEPS), (len(z), 1))
        return np.asarray(grid[0][log_density(z, vectors, grid).argmax(axis=1)])


@cache
def load_continuous(weights: Path | None = None, encoder: Path | None = None) -> ContinuousModel:
    """The head of a file, or the shipped one; FormatError when it belongs to another encoder."""
    return ContinuousModel(*read_weights(SHIPPED, weights), weights_sha256(encoder))
