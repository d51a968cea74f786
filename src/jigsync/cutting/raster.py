"""Stage 3, masking: exact, antialiased, conjugate rasterisation of closed curves.

A pixel holds 17 x 15 = 255 samples, so alpha is simply the number of samples inside the curve: an integer from 0 to
255 with no rounding. A sample is inside by the winding rule on its scan line. Two cells that share a seam share the
bits of every crossing, so their alphas (all cells' alphas, at a vertex) sum to exactly 255 on every pixel.

Curve points are snapped to 1/1024 px first: the last bits of sin and cos differ between platforms, a puzzle may not.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

SAMPLES_X: Final = 17
SAMPLES_Y: Final = 15
SNAP: Final = 1024.0
BOX: Final = 4
_SIXTEENTHS: Final = ((np.arange(BOX * BOX + 1) * 255 + BOX * BOX // 2) // (BOX * BOX)).astype(np.uint8)


def snap(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points on the 1/1024 px lattice, where additions are exact."""
    return np.rint(points * SNAP) / SNAP


def crossings(
    points: NDArray[np.float64], samples_y: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Where a closed curve crosses the sample rows y = (row + 1/2) / samples_y.

    Each segment is walked from its upper to its lower end whatever its direction, so that both neighbours of a seam
    compute bit-identical crossings.

    Shapes: points (M, 2) as (x, y) -> row (C,), x (C,), sign (C,): +1 downwards, -1 upwards.
    """
    a, b = points, np.roll(points, -1, axis=0)
    down = b[:, 1] > a[:, 1]
    upper, lower = np.where(down[:, None], a, b), np.where(down[:, None], b, a)
    first = np.ceil(upper[:, 1] * samples_y - 0.5).astype(np.int64)
    last = np.ceil(lower[:, 1] * samples_y - 0.5).astype(np.int64)  # exclusive
    count = last - first
    segment = np.repeat(np.arange(len(points)), count)
    row = np.arange(len(segment)) - np.repeat(np.cumsum(count) - count, count) + first[segment]
    up, low = upper[segment], lower[segment]
    t = ((row + 0.5) / samples_y - up[:, 1]) / (low[:, 1] - up[:, 1])
    x = up[:, 0] + t * (low[:, 0] - up[:, 0])
    return row, x, np.where(down[segment], 1, -1)


def coverage(points: NDArray[np.float64], height: int, width: int) -> NDArray[np.uint8]:
    """Alpha of one simple closed curve, either direction.

    Shapes: points (M, 2) as (x, y) in pixels, inside the frame -> (height, width) uint8, samples inside.
    """
    row, x, sign = crossings(points, SAMPLES_Y)
    sample = np.clip(np.ceil(x * SAMPLES_X - 0.5).astype(np.int64), 0, SAMPLES_X * width)
    pixel, left_of = np.divmod(sample, SAMPLES_X)
    flat = (row // SAMPLES_Y) * (width + 2) + pixel
    size = height * (width + 2)
    # A crossing at sample s adds its sign to all samples >= s: (17 - left_of) in its own pixel, 17 in later ones.
    step = np.bincount(flat, sign * (SAMPLES_X - left_of), size) + np.bincount(flat + 1, sign * left_of, size)
    inside = np.cumsum(step.reshape(height, width + 2), axis=1)[:, :width]
    return np.abs(inside).astype(np.uint8)


def positive_winding(points: NDArray[np.float64], height: int, width: int) -> NDArray[np.uint8]:
    """Alpha of a closed curve that may cross itself: only what it winds around in the sense of its area counts.

    An inward offset folds over at sharp corners and thin necks; folded parts wind the other way and vanish.

    Shapes: points (M, 2) -> (height, width) uint8, rounded from 4 x 4 box averages.
    """
    row, x, sign = crossings(points, BOX)
    if _signed_area(points) < 0:
        sign = -sign
    column = np.clip(np.ceil(x * BOX - 0.5).astype(np.int64), 0, BOX * width)
    inside = (row >= 0) & (row < BOX * height)
    stride = BOX * (width + 1)
    step = np.zeros(BOX * height * stride, dtype=np.int8)
    np.add.at(step, row[inside] * stride + column[inside], sign[inside].astype(np.int8))
    # Clockwise as displayed, the curve goes up on the left of what it holds: the running sum is negative inside. Rows
    # end with sum 0, so one sum runs through all of them.
    hit = np.cumsum(step, dtype=np.int8) < 0
    # Box sums on four bytes at a time: no byte exceeds 16, so nothing carries.
    packed = hit.view(np.uint32).reshape(height, BOX, width + 1)[..., :-1].sum(axis=1, dtype=np.uint32)
    count = packed * np.uint32(0x01010101) >> np.uint32(24)
    return np.asarray(_SIXTEENTHS[count], dtype=np.uint8)


def _signed_area(points: NDArray[np.float64]) -> float:
    x, y = points[:, 0], points[:, 1]
    return float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) / 2)
