"""Poses as arrays, for code that composes thousands at once: the last axis is (x, y, angle), as in an information.

dst_from_src:  x_dst = R(angle) x_src + xy          a_from_c = compose(a_from_b, b_from_c)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles

Floats = NDArray[np.float64]


def compose(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """a_from_b, b_from_c -> a_from_c. Shapes: (..., 3), (..., 3) -> (..., 3)."""
    xy = angles.act(a[..., 2], b[..., :2]) + a[..., :2]
    return _join(xy, a[..., 2] + b[..., 2])


def inverse(a: NDArray[Any]) -> Floats:
    """b_from_a of a_from_b. Shapes: (..., 3) -> (..., 3)."""
    xy = -angles.act(-a[..., 2], a[..., :2])
    return _join(xy, -a[..., 2])


def between(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """i_from_j of canvas_from_i and canvas_from_j. Shapes: (..., 3), (..., 3) -> (..., 3)."""
    xy = angles.act(-a[..., 2], b[..., :2] - a[..., :2])
    return _join(xy, b[..., 2] - a[..., 2])


def apply(a: NDArray[Any], points: NDArray[Any]) -> Floats:
    """Maps points. Shapes: (..., 3), (..., 2) -> (..., 2)."""
    return np.asarray(angles.act(a[..., 2], points) + a[..., :2])


def swing(angle: NDArray[Any], xy: NDArray[Any]) -> Floats:
    """How a turned vector moves as the angle grows: d/da R(a) xy. Shapes: (...,), (..., 2) -> (..., 2)."""
    return angles.act(np.asarray(angle) + angles.QUARTER, xy)


def difference(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """a - b, the angle wrapped. Shapes: (..., 3), (..., 3) -> (..., 3)."""
    out: Floats = np.asarray(a, dtype=np.float64) - b
    out[..., 2] = angles.wrap(out[..., 2])
    return out


def _join(xy: Floats, angle: NDArray[Any]) -> Floats:
    return np.concatenate([xy, np.asarray(angles.wrap(angle))[..., None]], axis=-1)
