"""Side scores: what a measurement says about two fragments being direct neighbours.

A *side* is (fragment i, bearing a) in the fragment's own presented frame, numbered 4 i + a with a = E, N, W, S.
Side a of i touching side b of j is the unit-step relation (bearing a, relative turns r) with b = a + 2 - r, so the
16 unit-step relations of an ordered pair are the 4 x 4 pairs of sides, and reversing the pair transposes.

    score[s, t] = log p(s touches t) - log p(one of the relations in which they are not direct neighbours)

Positive: evidence for, negative: evidence against, 0: nothing known, which is also what a hole scores. When a
measurer tells nothing beyond direct neighbours, the sum of the scores over all touching sides is the joint
log-probability of all N (N - 1) / 2 pairs up to a constant.

A side that faces out of the grid scores `border`, where a measurer knows: the log-odds that it lies on the picture's
border against those of any side.

Shapes: dense (4N, 4N) float32, symmetric, the 4 x 4 blocks on the diagonal unused (0); or sparse rows with one
`floor` for every pair of sides that is not listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4


def side(fragment: int, bearing: int) -> int:
    """The number of a side: 4 * fragment + bearing."""
    return z4.ORDER * fragment + bearing % z4.ORDER


def side_at(fragment: int, turns: int, canvas_bearing: int) -> int:
    """The side of a fragment placed with `turns` that faces a bearing of the canvas (canvas = bearing + turns)."""
    return z4.ORDER * fragment + (canvas_bearing - turns) % z4.ORDER


def touching_side(bearing: int, relative: int) -> int:
    """Side of j that touches side `bearing` of i when j's relative turns are `relative`: b = a + 2 - r."""
    return z4.reverse(bearing, relative)[0]


@dataclass(frozen=True, eq=False)
class SideScores:
    """Symmetric scores of all pairs of sides; exactly one of `dense` and the three sparse arrays is set.

    Attributes:
        n: number of fragments N.
        dense: (4N, 4N) float32, or None.
        indptr, indices, values: rows in compressed sparse form, indices ascending within a row, symmetric:
            (4N + 1,) int64, (nnz,) int32, (nnz,) float32.
        floor: score of every pair that the sparse form does not list.
        border: (4N,) float32 score of facing out of the grid, or None where nothing is known.
    """

    n: int
    dense: NDArray[np.float32] | None = None
    indptr: NDArray[np.int64] | None = None
    indices: NDArray[np.int32] | None = None
    values: NDArray[np.float32] | None = None
    floor: float = 0.0
    border: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if (self.dense is None) == (self.indptr is None):
            raise ValueError("SideScores takes either a dense matrix or sparse rows")
        if self.dense is not None and self.dense.shape != (4 * self.n, 4 * self.n):
            raise ValueError(f"dense must be {(4 * self.n, 4 * self.n)}, got {self.dense.shape}")

    def to_dense(self) -> NDArray[np.float32]:
        """(4N, 4N) float32. Meant for small N: 64 N^2 bytes."""
        if self.dense is not None:
            return self.dense
        assert self.indptr is not None and self.indices is not None and self.values is not None
        out = np.full((4 * self.n, 4 * self.n), self.floor, dtype=np.float32)
        rows = np.repeat(np.arange(4 * self.n), np.diff(self.indptr))
        out[rows, self.indices] = self.values
        for i in range(self.n):
            out[4 * i : 4 * i + 4, 4 * i : 4 * i + 4] = 0.0
        return out
