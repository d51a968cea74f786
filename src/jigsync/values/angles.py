"""Angles: the circle SO(2), of which the quarter turns of `z4` are a subgroup.

    R(theta) = cos(theta) R(0) + sin(theta) R(1) = [[cos, sin], [-sin, cos]]   acting on (x, y), x right, y DOWN

theta is counter-clockwise as displayed, so R(90 degrees) is one turn; the sign comes from `z4.matrix(1)` alone.

Convention: radians in code, degrees in files. Differences are wrapped to [-pi, pi), here and nowhere else.
`cv2.getRotationMatrix2D` and `PIL.Image.rotate` turn the same way; SVG, CSS and canvas `rotate` the other way.
"""

from __future__ import annotations

import math
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4

Floats = NDArray[np.float64]
FULL: Final = 2 * math.pi
QUARTER: Final = math.pi / 2


@overload
def wrap(angle: float) -> float: ...
@overload
def wrap(angle: NDArray[Any]) -> Floats: ...
def wrap(angle: float | NDArray[Any]) -> float | Floats:
    """The same angle in [-pi, pi)."""
    wrapped = (np.asarray(angle, dtype=np.float64) + math.pi) % FULL - math.pi
    return float(wrapped) if wrapped.ndim == 0 else wrapped


def matrix(angle: float | NDArray[Any]) -> Floats:
    """R(angle). Shapes: () -> (2, 2); (...,) -> (..., 2, 2)."""
    theta = np.asarray(angle, dtype=np.float64)[..., None, None]
    return np.asarray(np.cos(theta) * z4.matrix(0) + np.sin(theta) * z4.matrix(1))


def act(angle: float | NDArray[Any], xy: NDArray[Any]) -> Floats:
    """R(angle) xy = cos(angle) xy + sin(angle) R(1) xy. Shapes: angle (...,), xy (..., 2) -> (..., 2), broadcast."""
    theta, xy = np.asarray(angle, dtype=np.float64)[..., None], np.asarray(xy, dtype=np.float64)
    return np.asarray(np.cos(theta) * xy + np.sin(theta) * z4.act(1, xy))


def of_turns(turns: int) -> float:
    """The angle of quarter turns, in [-pi, pi)."""
    return wrap(turns % z4.ORDER * QUARTER)


@overload
def nearest_turns(angle: float) -> int: ...
@overload
def nearest_turns(angle: NDArray[Any]) -> NDArray[np.int64]: ...
def nearest_turns(angle: float | NDArray[Any]) -> int | NDArray[np.int64]:
    """The quarter turns nearest to angles, 0..3."""
    turns = np.asarray(np.rint(np.asarray(angle, dtype=np.float64) / QUARTER), dtype=np.int64) % z4.ORDER
    return int(turns) if turns.ndim == 0 else turns


def nearest(matrix: NDArray[Any]) -> float:
    """The angle whose R(angle) is nearest to a 2 x 2 matrix: of a turn with a scale, its turn."""
    m = np.asarray(matrix, dtype=np.float64)
    return math.atan2(float((m * z4.matrix(1)).sum()), float((m * z4.matrix(0)).sum()))


def phase(angle: NDArray[Any]) -> NDArray[np.complex128]:
    """exp(i angle): the unit circle of synchronization. With quarter turns this is `z4.phase`.

    Convention: z_i = phase(theta_i) and H_ij = w_ij phase(-theta_ij) with theta_ij = theta_j - theta_i.
    """
    return np.asarray(np.exp(1j * np.asarray(angle, dtype=np.float64)))


def plane(xy: NDArray[Any]) -> NDArray[np.complex128]:
    """Vectors as numbers x - i y, which R(theta) multiplies by phase(theta). Shapes: (..., 2) -> (...)."""
    xy = np.asarray(xy, dtype=np.float64)
    return np.asarray(xy[..., 0] - 1j * xy[..., 1])


def vectors(z: NDArray[Any]) -> Floats:
    """The inverse of `plane`. Shapes: (...) -> (..., 2)."""
    return np.stack([np.real(z), -np.imag(z)], axis=-1)
