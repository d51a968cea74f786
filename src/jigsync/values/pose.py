"""Poses: x_canvas = R(turns) x_frag + xy.

Names say what they map: `canvas_from_frag`, `i_from_j`; `a_from_b.compose(b_from_c)` is `a_from_c`.
Units: one cell pitch. A fragment's origin is its container's centre; x right, y down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4


@dataclass(frozen=True)
class Pose:
    """dst_from_src: x_dst = R(turns) x_src + xy."""

    turns: int
    xy: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", int(self.turns) % z4.ORDER)
        object.__setattr__(self, "xy", (float(self.xy[0]), float(self.xy[1])))

    @classmethod
    def identity(cls) -> Pose:
        """x_dst = x_src."""
        return cls(0, (0.0, 0.0))

    @classmethod
    def of_cell(cls, row: int, col: int, turns: int) -> Pose:
        """canvas_from_frag of a placed fragment: the centre of cell (row, col) is at (x, y) = (col, row)."""
        return cls(turns, (col, row))

    def compose(self, other: Pose) -> Pose:
        """a_from_b.compose(b_from_c) = a_from_c: R = R_a R_b, t = R_a t_b + t_a."""
        return Pose(z4.compose(self.turns, other.turns), _add(self._rotate(other.xy), self.xy))

    def inverse(self) -> Pose:
        """b_from_a of a_from_b: (-k, -R(-k) t)."""
        back = z4.inverse(self.turns)
        x, y = z4.act(back, np.array(self.xy))
        return Pose(back, (-float(x), -float(y)))

    def between(self, other: Pose) -> Pose:
        """i_from_j of self = canvas_from_i, other = canvas_from_j: turns k_j - k_i, offset R(-k_i)(t_j - t_i)."""
        return self.inverse().compose(other)

    def act(self, points: NDArray[Any]) -> NDArray[Any]:
        """Maps points.

        Shapes: (..., 2) as (x, y) -> (..., 2).
        """
        return np.asarray(z4.act(self.turns, np.asarray(points)) + np.array(self.xy))

    def _rotate(self, xy: tuple[float, float]) -> tuple[float, float]:
        x, y = z4.act(self.turns, np.array(xy))
        return float(x), float(y)


def _add(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return a[0] + b[0], a[1] + b[1]
