"""What of a scan is background: a plain colour whose brightness may drift across the picture.

In Lab, with u, v in [-1, 1] across the picture, the background is a quadratic surface per channel,

    B(u, v) = c0 + c1 u + c2 v + c3 u^2 + c4 u v + c5 v^2

fitted to the pixels near the commonest colour of the picture's frame. A pixel is foreground when its distance to B

    d^2 = (LIGHT (L - B_L))^2 + (a - B_a)^2 + (b - B_b)^2

is more than a threshold that the background's own noise sets. Lightness counts less than colour: shadows are dark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values.errors import ImageError

SMALL: Final = 512
"""So many pixels of the longer side are looked at to fit the background."""
FRAME: Final = 0.04
"""Width of the frame in which the background's colour is looked for, as a share of the shorter side."""
LIGHT: Final = 0.6
NEAR: Final = 16.0
"""Distance from the commonest colour within which a pixel may be background."""
LEAST: Final = 4.5
"""Smallest threshold; about twice what the eye just sees."""
NOISES: Final = 4.5
"""Threshold in standard deviations of the background."""
_BAND: Final = 512  # rows converted at once, so that a large scan needs little more memory than itself


@dataclass(frozen=True, eq=False)
class Background:
    """A fitted background.

    Attributes:
        surface: (6, 3) coefficients c0..c5 of L, a and b.
        threshold: distance from which a pixel is foreground.
        share: of the frame that has the background's colour.
    """

    surface: NDArray[np.float64]
    threshold: float
    share: float

    def foreground(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(H, W) uint8, 1 where a pixel is not background. Shapes: rgb (H, W, 3)."""
        height, width = rgb.shape[:2]
        out = np.empty((height, width), dtype=np.uint8)
        for top in range(0, height, _BAND):
            rows = np.arange(top, min(top + _BAND, height))
            far = _distance(_lab(rgb[rows[0] : rows[-1] + 1]), self._at(rows, height, width))
            out[rows] = far > self.threshold
        return out

    def _at(self, rows: NDArray[np.int64], height: int, width: int) -> NDArray[np.float32]:
        return _evaluate(self.surface, _unit(rows, height), _unit(np.arange(width), width))


def fit_background(rgb: NDArray[np.uint8], name: str, like: NDArray[np.uint8] | None = None) -> Background:
    """Finds the background of a scan; ImageError when the frame shows no plain colour.

    Args:
        like: colours that somebody says are background; None: the commonest ones of the frame are.

    Shapes: rgb (H, W, 3), like (K, 3).
    """
    height, width = rgb.shape[:2]
    every = max(1, round(max(height, width) / SMALL))
    # Single pixels, not averages: the noise of the scan is what sets the threshold.
    lab = _lab(np.ascontiguousarray(rgb[every // 2 :: every, every // 2 :: every]))
    rows, cols = lab.shape[:2]
    edge = max(1, round(FRAME * min(rows, cols)))
    frame = np.ones((rows, cols), dtype=bool)
    frame[edge : rows - edge, edge : cols - edge] = False
    colours = lab[frame] if like is None else _lab(like[None])[0]
    near = _distance(lab, _commonest(colours)) < NEAR
    share = float(near[frame].mean())
    if share < 0.5 and like is None:
        raise ImageError(
            f"The scan '{name}' must show its fragments on a plain background with some of it all around."
            f" Only {share:.0%} of its frame has one colour."
        )
    basis = _basis(_unit(np.arange(rows), rows)[:, None], _unit(np.arange(cols), cols)[None])
    for _ in range(4):
        chosen = basis[near]
        surface = np.linalg.solve(chosen.T @ chosen + 1e-9 * len(chosen) * np.eye(6), chosen.T @ lab[near])
        far = _distance(lab, _evaluate(surface, _unit(np.arange(rows), rows), _unit(np.arange(cols), cols)))
        noise = 1.2 * float(np.median(far[near]))  # of a distance in three channels
        near = far < max(LEAST, 3 * noise)
    return Background(np.asarray(surface, dtype=np.float64), max(LEAST, NOISES * noise), share)


def _lab(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.asarray(cv2.cvtColor(rgb.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB), dtype=np.float32)


def _distance(lab: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.float32]:
    difference = lab - centre
    difference[..., 0] *= np.float32(LIGHT)
    return np.asarray(np.sqrt(np.square(difference).sum(axis=-1)))


def _commonest(colours: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of the fullest bin of 6 units a side. Shapes: (K, 3) -> (3,)."""
    bins = np.floor(colours / 6).astype(np.int64)
    _, member, count = np.unique(bins, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(colours[member.ravel() == count.argmax()].mean(axis=0))


def _unit(at: NDArray[np.int64], length: int) -> NDArray[np.float64]:
    return np.asarray((at + 0.5) * (2 / length) - 1, dtype=np.float64)


def _evaluate(c: NDArray[Any], v: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float32]:
    """B at every pair of v and u, as (c0 + c2 v + c5 v^2) + u (c1 + c3 u + c4 v). Shapes: -> (len(v), len(u), 3)."""
    down = (c[0] + np.outer(v, c[2]) + np.outer(v * v, c[5])).astype(np.float32)
    across = (c[1] + np.outer(u, c[3])).astype(np.float32)
    out = across[None] + np.outer(v, c[4]).astype(np.float32)[:, None]
    out *= u.astype(np.float32)[None, :, None]
    out += down[:, None]
    return np.asarray(out)


def _basis(v: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, cols, 6)."""
    u, v = np.broadcast_arrays(u, v)
    return np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=-1)
