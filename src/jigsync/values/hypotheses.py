"""Pair hypotheses: what measuring hands to solving, whatever the layout.

    i_from_j      x_i = R(angle) x_j + xy,  i != j: how fragment j may lie as seen from fragment i
    log_odds      that the two lie like this, against their not being neighbours at all
    information   inverse covariance of (x, y, angle) of i_from_j, in i's frame: how well the pose is known. A straight
                  seam slides: there the variance along the seam is large

A pair may have several hypotheses; they exclude each other. Everything that may hold of a pair is listed once, from
whichever side; `reversed` gives the other side's words.

Convention: xy is where j's centre lies in i's frame, in pixels of the fragments (in cells where a grid measurer knows
nothing else); angle in radians, counter-clockwise as displayed. (x, y, angle) is the order of the information.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles, z4
from jigsync.values.errors import FormatError
from jigsync.values.pose import Pose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NO_TURNS = -1
"""In `PairHypotheses.turns`: the angle is no quarter turn that is known exactly."""


@dataclass(frozen=True, eq=False)
class PairHypotheses:
    """H hypotheses about pairs of N fragments.

    Attributes:
        n: number of fragments.
        i, j: (H,) int64, the two fragments.
        angle: (H,) float64 radians in [-pi, pi).
        xy: (H, 2) float64.
        log_odds: (H,) float64.
        information: (H, 3, 3) float64, symmetric, positive semidefinite.
        turns: (H,) int64, the angle in quarter turns where it is one exactly, else NO_TURNS; None: no angle is.
    """

    n: int
    i: Ints
    j: Ints
    angle: Floats
    xy: Floats
    log_odds: Floats
    information: Floats
    turns: Ints | None = None

    def __post_init__(self) -> None:
        h = len(self.i)
        shapes = {"j": (h,), "angle": (h,), "xy": (h, 2), "log_odds": (h,), "information": (h, 3, 3)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise FormatError(f"The '{name}' of {h} pair hypotheses must have shape {shape}.")
        ends = np.concatenate([self.i, self.j])
        if h and (ends.min() < 0 or ends.max() >= self.n or np.any(self.i == self.j)):
            raise FormatError(f"A pair hypothesis must join two different fragments of 0..{self.n - 1}.")
        if not all(np.isfinite(part).all() for part in (self.angle, self.xy, self.log_odds, self.information)):
            raise FormatError("The numbers of pair hypotheses must be finite.")

    def __len__(self) -> int:
        return len(self.i)

    @classmethod
    def none(cls, n: int) -> PairHypotheses:
        """Nothing is known of any pair."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(n, empty, empty, np.zeros(0), np.zeros((0, 2)), np.zeros(0), np.zeros((0, 3, 3)))

    def pose(self, k: int) -> Pose:
        """i_from_j of the k-th."""
        at = float(self.xy[k, 0]), float(self.xy[k, 1])
        exact = self.turns is not None and int(self.turns[k]) != NO_TURNS
        return Pose(float(self.angle[k]), at, int(self.turns[k]) if exact and self.turns is not None else None)

    def keep(self, which: NDArray[np.bool_] | Ints) -> PairHypotheses:
        """Some of them, by a mask or by numbers."""
        return PairHypotheses(
            self.n,
            self.i[which],
            self.j[which],
            self.angle[which],
            self.xy[which],
            self.log_odds[which],
            self.information[which],
            None if self.turns is None else self.turns[which],
        )

    def select(self, members: Ints) -> PairHypotheses:
        """Those between some fragments, which are numbered anew in the given order."""
        at = np.full(self.n, -1, dtype=np.int64)
        at[members] = np.arange(len(members))
        kept = self.keep((at[self.i] >= 0) & (at[self.j] >= 0))
        return PairHypotheses(
            len(members), at[kept.i], at[kept.j], kept.angle, kept.xy, kept.log_odds, kept.information, kept.turns
        )

    def reversed(self) -> PairHypotheses:
        """The same, said from the other side: j_from_i = (-angle, -R(-angle) xy).

        With e = (dx, dy, da) the error of i_from_j and xy' = -R(-angle) xy, the error of j_from_i is J e,

            J = [[-R(-angle), R'(-angle) xy], [0, -1]],     information' = J^-T information J^-1
        """
        back = -self.angle
        xy = -angles.act(back, self.xy)
        jacobian = np.zeros((len(self), 3, 3))
        jacobian[:, :2, :2] = -angles.matrix(back)
        # d(-R(-a) t)/da = R'(-a) t, and R'(b) = R(b + 90 degrees)
        jacobian[:, :2, 2] = angles.act(back + angles.QUARTER, self.xy)
        jacobian[:, 2, 2] = -1.0
        inverse = np.linalg.inv(jacobian)
        information = np.einsum("hba,hbc,hcd->had", inverse, self.information, inverse)
        turns = None if self.turns is None else np.where(self.turns == NO_TURNS, NO_TURNS, -self.turns % z4.ORDER)
        return PairHypotheses(self.n, self.j, self.i, angles.wrap(back), xy, self.log_odds, information, turns)

    def joined(self, other: PairHypotheses) -> PairHypotheses:
        """Both lists, one after the other."""
        if self.n != other.n:
            raise FormatError(f"Hypotheses about {self.n} and about {other.n} fragments cannot be joined.")
        turns = None
        if self.turns is not None or other.turns is not None:
            lists = (part.turns if part.turns is not None else np.full(len(part), NO_TURNS) for part in (self, other))
            turns = np.concatenate(list(lists))
        both = [
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("i", "j", "angle", "xy", "log_odds", "information")
        ]
        i, j, angle, xy, log_odds, information = both
        return PairHypotheses(self.n, i, j, angle, xy, log_odds, information, turns)
