"""Hypotheses as a solver reads them, and when two of them say the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.free import motion
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Links(NamedTuple):
    """Relative poses of pairs. Shapes: i, j (K,); i_from_j (K, 3); information (K, 3, 3)."""

    i: Ints
    j: Ints
    i_from_j: Floats
    information: Floats

    @classmethod
    def of(cls, hypotheses: PairHypotheses) -> Links:
        """The same poses as arrays of (x, y, angle)."""
        h = hypotheses
        return cls(h.i, h.j, np.concatenate([h.xy, h.angle[:, None]], axis=1), h.information)

    def keep(self, which: NDArray[np.bool_] | Ints | slice) -> Links:
        """Some of them."""
        return Links(self.i[which], self.j[which], self.i_from_j[which], self.information[which])

    def hypotheses(self, n: int, log_odds: Floats) -> PairHypotheses:
        """The same poses as pair hypotheses of n fragments."""
        pose = self.i_from_j
        return PairHypotheses(n, self.i, self.j, angles.wrap(pose[:, 2]), pose[:, :2], log_odds, self.information)


def composed(ab: Floats, ab_covariance: Floats, bc: Floats, bc_covariance: Floats) -> tuple[Floats, Floats]:
    """a_from_c of a_from_b and b_from_c, and its covariance to first order. Shapes: (K, 3), (K, 3, 3) twice."""
    first = np.tile(np.eye(3), (len(ab), 1, 1))
    first[:, :2, 2] = motion.swing(ab[:, 2], bc[:, :2])
    second = np.tile(np.eye(3), (len(ab), 1, 1))
    second[:, :2, :2] = angles.matrix(ab[:, 2])
    covariance = sandwich(first, ab_covariance) + sandwich(second, bc_covariance)
    return motion.compose(ab, bc), covariance


def sandwich(jacobian: Floats, covariance: Floats) -> Floats:
    """J C J^T. Shapes: (K, 3, 3) twice."""
    return np.asarray(jacobian @ covariance @ jacobian.transpose(0, 2, 1))


def mahalanobis(error: Floats, covariance: Floats) -> Floats:
    """e^T C^-1 e. Shapes: (K, 3), (K, 3, 3) -> (K,)."""
    return np.asarray(np.einsum("ka,ka->k", error, np.linalg.solve(covariance, error[..., None])[..., 0]))
