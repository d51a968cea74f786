"""How far a fragment lies off its nearest right angle, from its outline alone.

Convention: degrees, positive is counter-clockwise as displayed (as one turn is); in (-45, 45].

Straight-sided fragments: four independent estimates agree and their median is taken: the phases of

    sum |d| (d / |d|)^4 over steps d of the outline, at two step lengths        sides point along the axes
    - sum z^4 over the pixels z = x + i y about their centre                    corners point along the diagonals

and the smallest box around it. Broken outlines: the mean of the four chords between corners; its standard error tells
whether that is knowledge or noise. A mean within twice its error is reported as unknown: turning such a fragment by
it would do more harm than good (a torn side bends by more than a careful hand leaves it skewed).
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

AGREE: Final = 0.5
"""Degrees within which the four estimates must lie to be believed at once."""
SUREST: Final = 2.0
"""A mean of chords counts when it is so many standard errors from 0 ..."""
LARGEST_ERROR: Final = 2.5
"""... and when its error, in degrees, is no larger than this."""
STEPS: Final = (0.12, 0.25)
"""Step lengths along the outline, in sides of the square of the fragment's area."""

Outline = NDArray[np.complex128]
"""(K,) points x + i y, y up, so that angles grow counter-clockwise."""


def skew_of(mask: NDArray[np.uint8]) -> float | None:
    """Degrees the fragment is turned counter-clockwise from its nearest right angle; None when its outline does not
    tell. Shapes: mask (H, W), 1 inside."""
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    points = np.asarray(max(outlines, key=len)[:, 0], dtype=np.int32)
    if len(points) < 16:
        return None
    outline: Outline = points[:, 0] - 1j * points[:, 1]
    side = float(np.sqrt(np.count_nonzero(mask)))
    estimates = np.array(
        [*(_by_steps(outline, max(1, round(step * side))) for step in STEPS), _by_corners(mask), _by_box(points)]
    )
    # Angles mod 90 degrees: unroll around their mean before taking a median.
    mean = _fourth(np.exp(4j * np.radians(estimates)).sum())
    around = mean + (estimates - mean + 45) % 90 - 45
    if np.ptp(around) <= AGREE:
        return _nearest(float(np.median(around)))
    angle, error = _by_chords(outline, side, mean)
    if error > LARGEST_ERROR or abs(angle) < SUREST * error or abs(angle) > 45:
        return None
    return _nearest(angle)


def _fourth(z: complex) -> float:
    """A fourth of a complex number's angle, degrees."""
    return float(np.degrees(np.angle(z)) / 4)


def _nearest(angle: float) -> float:
    return -((-angle + 45) % 90 - 45)


def _by_steps(outline: Outline, half: int) -> float:
    step = np.roll(outline, -half) - np.roll(outline, half)
    length = np.maximum(np.abs(step), 1e-9)
    return _fourth((length * (step / length) ** 4).sum())


def _by_corners(mask: NDArray[np.uint8]) -> float:
    y, x = np.nonzero(mask)
    z = (x - x.mean()) - 1j * (y - y.mean())
    return _fourth(-(z**4).sum())


def _by_box(points: NDArray[np.int32]) -> float:
    return -float(cv2.minAreaRect(points)[2])


def _by_chords(outline: Outline, side: float, start: float) -> tuple[float, float]:
    """(mean angle of the chords between the four corners, its standard error), both in degrees."""
    half = max(1, round(0.03 * side))
    kernel = np.ones(2 * half + 1) / (2 * half + 1)
    wrapped = np.concatenate([outline[-half:], outline, outline[:half]])
    smooth = np.convolve(wrapped, kernel, mode="valid") - outline.mean()
    corner_of = np.exp(-1j * np.pi * (0.25 + 0.5 * np.arange(4)))
    along = np.exp(1j * np.pi * np.array([1.0, 1.5, 0.0, 0.5]))
    angle, error = start, np.inf
    for _ in range(3):
        upright = smooth * np.exp(-1j * np.radians(angle))
        corners = upright[(upright[:, None] * corner_of).real.argmax(axis=0)]
        lean = np.degrees(np.angle((np.roll(corners, -1) - corners) / along))
        angle, error = angle + float(lean.mean()), float(lean.std(ddof=1) / 2)
    return angle, error
