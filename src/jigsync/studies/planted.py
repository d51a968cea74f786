"""Planted puzzles: side scores with a known placement and without pixels, to judge a decoder apart from a measurer.

Every pair of sides gets a logit of Gumbel noise. A true pair's logit is raised by log(q (M - 1) / (1 - q)) over its
M candidates, which makes it the first of its row with probability exactly q; each side's q is spread around the
puzzle's, and may be lower inside one region of the picture (a sky). Logits become log-probabilities by a softmax of
the row and of the column, averaged; scores are their log-odds, clipped as a calibrated measurer's are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores, side_at

CLIP = (-5.0, 8.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Planted(Arrangement):
    """Scores and the placement they were made from; some fragments may have no slot."""

    scores: SideScores


def true_pairs(found: Arrangement) -> NDArray[np.int64]:
    """(P, 2) sides that touch in a placement, one row a touching pair."""
    grid, slots, turns = found.grid, found.slots, found.turns
    at = {int(slot): i for i, slot in enumerate(slots) if slot >= 0}
    pairs = []
    for slot, i in at.items():
        row, col = grid.cell(slot)
        for bearing in (z4.E, z4.S):
            d_row, d_col = z4.bearing_offset(bearing)
            j = at.get(grid.slot(row + d_row, col + d_col)) if grid.contains(row + d_row, col + d_col) else None
            if j is not None:
                pairs.append((side_at(i, int(turns[i]), bearing), side_at(j, int(turns[j]), bearing + 2)))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def plant(
    grid: Grid,
    q: float,
    rng: np.random.Generator,
    *,
    upright: bool = False,
    missing: int = 0,
    extra: int = 0,
    sky: float = 0.0,
    keep: int | None = None,
) -> Planted:
    """A planted puzzle.

    Args:
        q: probability that a side's true partner is its first choice.
        missing, extra: fragments left out of the grid, fragments that belong to no slot.
        sky: share of the rows, from the top, whose q is a quarter of the others'.
        keep: keep only so many best partners a side, in sparse form; None is dense.
    """
    n = grid.size - missing + extra
    slots = np.full(n, -1, dtype=np.int64)
    order = rng.permutation(n)[: grid.size - missing]
    slots[order] = rng.permutation(grid.size)[: len(order)]
    turns = np.zeros(n, dtype=np.int64) if upright else rng.integers(0, 4, n)
    turns[slots < 0] = 0
    pairs = true_pairs(Arrangement(grid, slots, turns))
    logits = np.zeros((4 * n, 4 * n), dtype=np.float32)
    upper = np.triu_indices(4 * n, 1)
    logits[upper] = rng.gumbel(size=len(upper[0]))
    rows = slots[pairs[:, 0] // 4] // grid.cols
    centre = np.where(rows < sky * grid.rows, q / 4, q)
    each = np.clip(rng.beta(6 * centre, 6 * (1 - centre)), 0.01, 0.995)
    candidates = 4 * n - 5
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    logits[low, high] += np.log(each * candidates / (1 - each)).astype(np.float32)
    logits += logits.T
    for i in range(n):
        logits[4 * i : 4 * i + 4, 4 * i : 4 * i + 4] = -np.inf
    total = np.log(np.exp(logits.astype(np.float64)).sum(axis=1))
    log_p = np.minimum(logits - 0.5 * (total[:, None] + total[None, :]), -1e-6)
    dense = np.clip(log_p - np.log1p(-np.exp(log_p)), *CLIP).astype(np.float32)
    for i in range(n):
        dense[4 * i : 4 * i + 4, 4 * i : 4 * i + 4] = 0.0
    scores = SideScores(n, dense=dense) if keep is None else sparsify(dense, keep)
    return Planted(grid, slots, turns, scores=scores)


def sparsify(dense: NDArray[np.float32], keep: int, floor: float = CLIP[0]) -> SideScores:
    """The `keep` best partners of every side, made symmetric; everything else is the floor."""
    best = np.argpartition(-dense, min(keep, len(dense) - 1), axis=1)[:, :keep]
    kept = np.zeros(dense.shape, dtype=bool)
    np.put_along_axis(kept, best, True, axis=1)
    own = np.arange(len(dense)) // 4
    kept = (kept | kept.T) & (own[:, None] != own[None, :])
    rows, cols = np.nonzero(kept)
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    return SideScores(len(dense) // 4, None, indptr, cols.astype(np.int32), dense[rows, cols], floor)
