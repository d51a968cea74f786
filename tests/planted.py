"""Puzzles without pixels: side scores in which the true neighbours stand out, as far as the noise lets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jigsync.solvers.base import Assignment, SolveRequest
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores


@dataclass(frozen=True)
class Fixed:
    """Measurements that hold nothing but side scores."""

    scores: SideScores

    unary_turns = unary_cells = reach = frames = None
    unit_only = True

    @property
    def n(self) -> int:
        return self.scores.n

    def sides(self) -> SideScores:
        return self.scores


@dataclass(frozen=True, eq=False, kw_only=True)
class Planted(Arrangement):
    """A puzzle and its truth; a fragment without a slot does not belong."""

    ids: tuple[str, ...]
    scores: SideScores

    def request(self, **options: Any) -> SolveRequest:
        return SolveRequest(self.ids, Fixed(self.scores), **options)  # type: ignore[arg-type]

    def solved_by(self, answer: Assignment, *, turned: bool) -> bool:
        """Is this the truth, in any gauge when turned?"""
        placed = self.slots >= 0
        for gauge in range(4) if turned else (0,):
            grid = self.grid.turned(gauge)
            if answer.grid != grid:
                continue
            moved = z4.turn_cells(self.cells, self.grid.shape, gauge)
            slots = np.where(placed, moved[:, 0] * grid.cols + moved[:, 1], -1)
            turns = np.where(placed, (self.turns + gauge) % 4, 0)
            if np.array_equal(answer.slots, slots) and np.array_equal(answer.turns, turns):
                return True
        return False


def planted(
    grid: Grid,
    seed: int = 0,
    *,
    turned: bool = True,
    noise: float = 0.0,
    good: float = 6.0,
    missing: tuple[int, ...] = (),
    strangers: int = 0,
    border: bool = False,
) -> Planted:
    """Scores of -4 + noise everywhere, `good` more where sides truly touch.

    Args:
        missing: slots whose fragment is lost.
        strangers: fragments of another picture, which touch nothing.
        border: scores of facing out of the grid, which are nothing but noise.
    """
    rng = np.random.default_rng([seed, grid.rows, grid.cols])
    slots = np.concatenate([np.setdiff1d(np.arange(grid.size), missing), np.full(strangers, -1)])
    rng.shuffle(slots)
    n = len(slots)
    turns = rng.integers(0, 4, n) if turned else np.zeros(n, dtype=np.int64)
    matrix = np.triu(rng.normal(-4.0, noise, (4 * n, 4 * n)))
    at = {int(slot): i for i, slot in enumerate(slots) if slot >= 0}
    for slot, i in at.items():
        row, col = grid.cell(slot)
        for near, bearing in ((grid.slot(row, col + 1), 0), (grid.slot(row + 1, col), 3)):
            inside = col + 1 < grid.cols if bearing == 0 else row + 1 < grid.rows
            if inside and near in at:
                j = at[near]
                s, t = 4 * i + (bearing - turns[i]) % 4, 4 * j + (bearing + 2 - turns[j]) % 4
                matrix[min(s, t), max(s, t)] += good
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    for i in range(n):
        matrix[4 * i : 4 * i + 4, 4 * i : 4 * i + 4] = 0.0
    ids = tuple(f"f{7 * i + 3:03d}" for i in rng.permutation(n))
    rim = rng.normal(0, 3, 4 * n).astype(np.float32) if border else None
    scores = SideScores(n, dense=matrix.astype(np.float32), border=rim)
    return Planted(grid, slots, turns, ids=ids, scores=scores)


def sparse(scores: SideScores, above: float) -> SideScores:
    """The same scores as sparse rows: what is at most `above` is left to the floor, which is `above`."""
    assert scores.dense is not None
    fragment = np.arange(4 * scores.n) // 4
    s, t = np.nonzero((scores.dense > above) & (fragment[:, None] != fragment))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(s, minlength=4 * scores.n))]).astype(np.int64)
    return SideScores(scores.n, None, indptr, t.astype(np.int32), scores.dense[s, t], above, scores.border)
