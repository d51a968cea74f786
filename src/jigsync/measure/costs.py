"""Costs of two sides touching, compared as a whole: Lab seam band, Mahalanobis gradient compatibility (MGC).

A cost is asked for row by row: `cost.rows(block)` gives the cost of the block's sides against all 4N sides, low for
sides that belong together. Every cost expands into matrix products, so that a block is a few BLAS calls, a dense
matrix for small N never needs a Python loop, and thousands of fragments never need a dense matrix.
"""

from __future__ import annotations

from typing import Final, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure.contour import Contours, facing

Matrix = NDArray[np.float32]


class Cost(Protocol):
    """Costs of touching sides."""

    def rows(self, block: slice) -> Matrix:
        """Shapes: a slice of B sides -> (B, 4N) float32, at least 0."""


class SeamBand:
    """Distance of the colours on both sides of the seam in CIE-Lab, over a band of 20 % of the cell (or its first
    `depth` pixels), mirrored at the seam so that pixels at equal distance from it are compared.

        cost = mean_{y, d} | lab_s(y, d) - lab_t(L - 1 - y, d) |^2
    """

    def __init__(self, contours: Contours, depth: int | None = None) -> None:
        lab = to_lab(contours.colour[:, :, :depth])
        self._east = lab.reshape(len(lab), -1)
        self._west = np.ascontiguousarray(facing(lab)).reshape(len(lab), -1)
        self._square = np.square(self._east).mean(axis=1)

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in squared Lab units."""
        cross = self._east[block] @ self._west.T / self._east.shape[1]
        return np.maximum(self._square[block, None] + self._square[None] - 2 * cross, 0)


DUMMY_GRADIENTS: Final = (
    np.array(
        [[0, 0, 0], [1, 1, 1], [-1, -1, -1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]],
        dtype=np.float32,
    )
    / 255
)
"""Gallagher's nine dummy gradients (one grey level each), which keep the covariance invertible on flat sides."""


class Gradients:
    """Mahalanobis gradient compatibility (Gallagher 2012), both directions added.

    With g_s(y) = x_s(y, 0) - x_s(y, 1) the colour gradient towards the seam just inside s, its mean mu_s and its
    covariance S_s over the rows and nine dummy gradients,

        D(s, t) = mean_y (x_t(y) - x_s(y) - mu_s)^T S_s^-1 (x_t(y) - x_s(y) - mu_s),   cost = D(s, t) + D(t, s).

    Expanded, D is one product over the six entries of x_t x_t^T and one over the 3 L colours.
    """

    def __init__(self, contours: Contours) -> None:
        edge, inner = contours.colour[:, :, 0], contours.colour[:, :, 1]
        sides, samples = edge.shape[:2]
        gradient = np.concatenate(
            [edge - inner, np.broadcast_to(DUMMY_GRADIENTS, (sides, *DUMMY_GRADIENTS.shape))], axis=1
        )
        mean = (edge - inner).mean(axis=1)
        centred = gradient - gradient.mean(axis=1, keepdims=True)
        covariance = np.einsum("syc,syd->scd", centred, centred) / (gradient.shape[1] - 1)
        inverse = np.linalg.inv(covariance.astype(np.float64)).astype(np.float32)
        predicted = edge + mean[:, None]
        weighted = np.einsum("scd,syd->syc", inverse, predicted)
        other = facing(edge)
        self._quadratic = inverse.reshape(sides, 9)
        self._linear = weighted.reshape(sides, -1)
        self._constant = np.einsum("syc,syc->s", weighted, predicted) / samples
        self._other_square = (np.einsum("syc,syd->scd", other, other) / samples).reshape(sides, 9)
        self._other = np.ascontiguousarray(other).reshape(sides, -1) / samples

    def _directed(self, s: slice, t: slice) -> Matrix:
        """D(s, t). Shapes: -> (B, C)."""
        value = self._quadratic[s] @ self._other_square[t].T - 2 * (self._linear[s] @ self._other[t].T)
        return np.asarray(value + self._constant[s, None])

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), without unit."""
        every = slice(None)
        return np.maximum(self._directed(block, every) + self._directed(every, block).T, 0)


def to_lab(rgb: NDArray[np.float32]) -> NDArray[np.float32]:
    """CIE-Lab of sRGB in [0, 1].

    Shapes: (..., 3) -> (..., 3) float32.
    """
    flat = np.ascontiguousarray(rgb.reshape(-1, 1, 3))
    return np.asarray(cv2.cvtColor(flat, cv2.COLOR_RGB2Lab), dtype=np.float32).reshape(rgb.shape)
