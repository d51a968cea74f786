"""Poses: x_dst = R(angle) x_src + xy.

Names say what they map: `canvas_from_frag`, `i_from_j`; `a_from_b.compose(b_from_c)` is `a_from_c`.
A fragment's origin is the centre of its picture; x right, y down. The unit is one pixel of the fragments, except where
a placement knows only its cells (`Placed.at` without a pitch): then it is one cell.

A pose made from quarter turns knows its `turns` exactly, and so does everything composed of such poses: no float is
compared to find out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles, z4
from jigsync.values.errors import bad_value

RIGHT = 90.0  # degrees; multiples of it are exact in binary


@dataclass(frozen=True)
class Pose:
    """dst_from_src: x_dst = R(angle) x_src + xy.

    Attributes:
        angle: radians, counter-clockwise as displayed, in [-pi, pi).
        xy: where the source's origin goes.
        turns: the angle in quarter turns where it is one exactly, else None. Given, it decides the angle.
    """

    angle: float
    xy: tuple[float, float]
    turns: int | None = None

    def __post_init__(self) -> None:
        turns = None if self.turns is None else int(self.turns) % z4.ORDER
        angle = angles.of_turns(turns) if turns is not None else angles.wrap(float(self.angle))
        xy = (float(self.xy[0]), float(self.xy[1]))
        if not math.isfinite(angle) or not all(map(math.isfinite, xy)):
            raise bad_value("angle and xy", "a pose", "finite numbers", (self.angle, self.xy))
        for name, value in (("turns", turns), ("angle", angle), ("xy", xy)):
            object.__setattr__(self, name, value)

    @classmethod
    def identity(cls) -> Pose:
        """x_dst = x_src."""
        return cls.of_turns(0, (0.0, 0.0))

    @classmethod
    def of_turns(cls, turns: int, xy: tuple[float, float]) -> Pose:
        """A pose at a quarter turn, exactly."""
        return cls(0.0, xy, turns)

    @classmethod
    def of_degrees(cls, degrees: float, xy: tuple[float, float]) -> Pose:
        """A pose as files have it; a multiple of 90 degrees is a quarter turn exactly."""
        whole = degrees % RIGHT == 0  # both are exact: no rounding is compared
        return cls(math.radians(degrees), xy, int(degrees // RIGHT) if whole else None)

    @classmethod
    def of_cell(cls, row: int, col: int, turns: int) -> Pose:
        """canvas_from_frag in cells: the centre of cell (row, col) is at (x, y) = (col, row)."""
        return cls.of_turns(turns, (col, row))

    @property
    def degrees(self) -> float:
        """The angle in degrees, in [-180, 180); exact for quarter turns."""
        if self.turns is not None:
            return (self.turns * RIGHT + 180.0) % 360.0 - 180.0
        return math.degrees(self.angle)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """[R | xy]. Shapes: -> (2, 3)."""
        turn = angles.matrix(self.angle) if self.turns is None else z4.matrix(self.turns).astype(np.float64)
        return np.concatenate([turn, np.array(self.xy)[:, None]], axis=1)

    def compose(self, other: Pose) -> Pose:
        """a_from_b.compose(b_from_c) = a_from_c: R = R_a R_b, t = R_a t_b + t_a."""
        (x, y), (dx, dy) = self._rotate(other.xy), self.xy
        if self.turns is not None and other.turns is not None:
            return Pose.of_turns(z4.compose(self.turns, other.turns), (x + dx, y + dy))
        return Pose(self.angle + other.angle, (x + dx, y + dy))

    def inverse(self) -> Pose:
        """b_from_a of a_from_b: (-angle, -R(-angle) t)."""
        back = Pose(-self.angle, (0.0, 0.0), None if self.turns is None else z4.inverse(self.turns))
        x, y = back._rotate(self.xy)
        return Pose(back.angle, (-x, -y), back.turns)

    def between(self, other: Pose) -> Pose:
        """i_from_j of self = canvas_from_i, other = canvas_from_j: R(-theta_i)(t_j - t_i), theta_j - theta_i."""
        return self.inverse().compose(other)

    def act(self, points: NDArray[Any]) -> NDArray[Any]:
        """Maps points. Shapes: (..., 2) as (x, y) -> (..., 2)."""
        points = np.asarray(points)
        turned = angles.act(self.angle, points) if self.turns is None else z4.act(self.turns, points)
        return np.asarray(turned + np.array(self.xy))

    def _rotate(self, xy: tuple[float, float]) -> tuple[float, float]:
        turned = angles.act(self.angle, np.array(xy)) if self.turns is None else z4.act(self.turns, np.array(xy))
        return float(turned[0]), float(turned[1])
