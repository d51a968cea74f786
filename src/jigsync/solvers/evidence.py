"""Everything measured, in the form the compiled decoder takes: side scores, single-fragment terms, far relations.

With q_ij = log(mass of the 176 relations that are no unit step / 176), the joint log-probability of all pairs is

    sum_{i<j} log p_ij(relation) = const + sum_{touching} score[s, t] + sum_{other pairs} (log p_ij(relation) - q_ij)

The last sum is 0 for a measurer that knows direct neighbours only; for one that knows more it is passed as a table,
half of it for each direction of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import vocabulary as v
from jigsync.values.border import pose_terms
from jigsync.values.layout import Grid
from jigsync.values.measurements import DENSE_LIMIT, SCORE_FLOOR, Measurements
from jigsync.values.sides import SideScores

MIN_CELL_SIGMA: Final = 0.02
REACH: Final = 0.4
"""What a fragment's reach counts against its seams: it shares what it knows with them, and with other fragments. Best4
AA+rot of 45 eroded validation puzzles: 5 x 5 at 0 / 0.3 / 0.4 / 0.6 0.45, 0.50, 0.49, 0.47; 10 x 10 at 0 / 0.4 0.050,
0.098."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Terms of the joint energy that do not depend on the grid.

    Attributes:
        scores: side scores.
        unary_turns: (N, 4) or None.
        far: (N, N, 192) float32, 0 for unit steps, or None when nothing is known beyond direct neighbours.
    """

    measurements: Measurements
    scores: SideScores
    unary_turns: NDArray[np.float32] | None
    far: NDArray[np.float32] | None

    @classmethod
    def of(cls, measurements: Measurements) -> Evidence:
        """Reads the measurements once, for all grids."""
        unary = measurements.unary_turns
        turns = None if unary is None else np.maximum(unary, SCORE_FLOOR).astype(np.float32)
        return cls(measurements, measurements.sides(), turns, _far(measurements))

    @property
    def sees_the_gauge(self) -> bool:
        """Do single fragments tell their turns or cells? Then rows x cols and cols x rows are different answers."""
        return self.unary_turns is not None or self.measurements.unary_cells is not None

    def cells(self, grid: Grid) -> NDArray[np.float32] | None:
        """log N(cell centre; mean, sigma) of every fragment and slot, or None. Shapes: -> (N, slots)."""
        unary = self.measurements.unary_cells
        if unary is None:
            return None
        centres = np.array([((col + 0.5) / grid.cols, (row + 0.5) / grid.rows) for row, col in grid.cells()])
        sigma = np.maximum(unary.sigma, MIN_CELL_SIGMA)[:, None]
        square = np.square(unary.xy[:, None] - centres[None]).sum(axis=2)
        return np.asarray(np.maximum(-square / (2 * sigma**2), SCORE_FLOOR), dtype=np.float32)

    def poses(self, grid: Grid) -> NDArray[np.float32] | None:
        """What every fragment's pose is worth by how far its sides are from the border, or None.

        Shapes: -> (N, slots, 4).
        """
        reach = self.measurements.reach
        return None if reach is None else np.float32(REACH) * pose_terms(reach, grid)

    def full(self, grid: Grid) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """The far table and which relation a pair of poses has in this grid, or None."""
        if self.far is None:
            return None
        d_row = np.arange(1 - grid.rows, grid.rows)[:, None, None, None]
        d_col = np.arange(1 - grid.cols, grid.cols)[None, :, None, None]
        k = np.arange(4)
        away = (d_row != 0) | (d_col != 0)
        relation = v.relation_of(np.where(away, d_row, 1), d_col, k[:, None], k[None])
        return self.far, np.asarray(np.where(away, relation, -1), dtype=np.int64)


def _far(measurements: Measurements) -> NDArray[np.float32] | None:
    """(log p_ij - q_ij) / 2 of the relations beyond unit steps, no lower than the floor."""
    if measurements.unit_only or measurements.n > DENSE_LIMIT:
        return None
    log_p = measurements.dense
    q = np.log(np.maximum(np.exp(log_p[:, :, ~v.IS_UNIT]).mean(axis=2, keepdims=True), 1e-9))
    far = np.maximum(log_p - q, np.float32(SCORE_FLOOR)) / 2
    far[:, :, v.IS_UNIT] = 0
    far[np.arange(measurements.n), np.arange(measurements.n)] = 0
    return np.asarray(far, dtype=np.float32)
