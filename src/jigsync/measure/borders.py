"""How a picture's outer borders lie: pictures are rectangles, and torn ones still show parts of their sides.

    share(phi) = sum_e l_e exp(-d(phi, phi_e)^2 / (2 WIDTH^2)) / sum_e l_e

over the edges e of the convex hull of what is opaque, with lengths l_e and directions phi_e; d is the difference modulo
a quarter turn. A rectangle has share 1 at its own direction. What is torn off, and what is ragged, takes from it.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values.angles import QUARTER

WIDTH: Final = math.radians(1.5)
STEP: Final = math.radians(0.25)
FEWEST: Final = 3
"""Corners of a hull."""


EVEN: Final = 0.26
SLOPE: Final = 0.045
"""Of 1500 rectangles of 6 to 30 torn pieces of which up to 85 % are gone, the direction is right within 2.5 degrees in
half of those with a share of EVEN, and the odds rise e-fold in SLOPE."""


class Borders(NamedTuple):
    """The further turn, in [0, 90) degrees, that makes most of the borders upright, and their share of the hull."""

    angle: float
    share: float

    @property
    def sure(self) -> float:
        """Probability that the picture is upright, or lies at a quarter turn, after that turn."""
        return 1 / (1 + math.exp((EVEN - self.share) / SLOPE))


def borders(alpha: NDArray[np.uint8]) -> Borders:
    """How the borders of an assembled picture lie; share 0 where nothing is opaque. Shapes: (H, W)."""
    rows, cols = np.nonzero(alpha >= 128)
    if not len(rows):
        return Borders(0.0, 0.0)
    hull = cv2.convexHull(np.stack([cols, rows], axis=1).astype(np.int32))[:, 0].astype(np.float64)
    if len(hull) < FEWEST:
        return Borders(0.0, 0.0)
    edges = np.roll(hull, -1, axis=0) - hull
    length = np.hypot(*edges.T)
    turn = np.arctan2(edges[:, 1], edges[:, 0]) % QUARTER  # y is down: turning by this much makes the edge level
    at = np.arange(0, QUARTER, STEP)
    apart = (at[:, None] - turn + QUARTER / 2) % QUARTER - QUARTER / 2
    weight = length * np.exp(-np.square(apart / WIDTH) / 2)
    best = int(np.argmax(weight.sum(axis=1)))
    angle = at[best] + (weight[best] * -apart[best]).sum() / weight[best].sum()
    return Borders(float(angle % QUARTER), float(weight[best].sum() / length.sum()))
