"""Side scores as the classical solvers read them: rows, best partners, best buddies, ranks, dense or sparse.

Sides are numbered 4 * fragment + bearing (`jigsync.values.sides`). A *partner* of side s is a side of another
fragment that may touch it; when all turns are known to be 0, only the opposite bearing may.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.problem import check_numbers
from jigsync.solvers.base import SolveRequest
from jigsync.solvers.energy import Ints, sparse_rows
from jigsync.values import z4
from jigsync.values.sides import SideScores

Floats = NDArray[np.float32]

RANK_ALL = 4096
"""Up to this many sides, `rank` lists every partner of every side (64 MB); above it, the best RANK_SOME."""
RANK_SOME = 64


def select(scores: SideScores, chosen: Ints) -> SideScores:
    """The scores among some fragments, renumbered 0..len(chosen)-1 in the given order (ascending)."""
    if len(chosen) == scores.n:
        return scores
    sides = (4 * chosen[:, None] + np.arange(4)).ravel()
    border = None if scores.border is None else scores.border[sides]
    if scores.dense is not None:
        return SideScores(len(chosen), dense=scores.dense[np.ix_(sides, sides)], border=border)
    indptr, indices, values = sparse_rows(scores)
    renumbered = np.full(4 * scores.n, -1, dtype=np.int64)
    renumbered[sides] = np.arange(len(sides))
    s = renumbered[np.repeat(np.arange(4 * scores.n), np.diff(indptr))]
    t = renumbered[indices]
    kept = (s >= 0) & (t >= 0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(s[kept], minlength=len(sides)))]).astype(np.int64)
    listed = t[kept].astype(np.int32)
    return SideScores(len(chosen), None, starts, listed, values[kept], scores.floor, border)


@dataclass(frozen=True, eq=False)
class SideTable:
    """The scores of the fragments that belong, seen through what may touch what."""

    scores: SideScores
    upright: bool

    @classmethod
    def of(cls, request: SolveRequest) -> SideTable:
        """The table of a request's fragments without the excluded ones; OptionError for scores that no sum can hold."""
        scores = request.measurements.sides()
        for name, part in (("dense", scores.dense), ("values", scores.values), ("border", scores.border)):
            if part is not None:
                check_numbers(name, "side scores", part)
        return cls(select(scores, request.belonging), request.upright)

    @property
    def n(self) -> int:
        """Number of fragments."""
        return self.scores.n

    @property
    def turns(self) -> tuple[int, ...]:
        """The turns a fragment can have."""
        return (0,) if self.upright else tuple(range(z4.ORDER))

    def may_touch(self, s: Ints, t: Ints) -> NDArray[np.bool_]:
        """Which pairs of sides may touch: two fragments and, when upright, opposite bearings."""
        apart = s // 4 != t // 4
        return np.asarray(apart & ((t - s) % 4 == 2) if self.upright else apart)

    def row(self, s: int) -> Floats:
        """Scores of side s with all sides, -inf where they may not touch.

        Shapes: (4N,).
        """
        if self._masked is not None:
            row: Floats = self._masked[s]
            return row
        indptr, indices, values = sparse_rows(self.scores)
        out = np.full(4 * self.n, self.scores.floor, dtype=np.float32)
        listed = slice(indptr[s], indptr[s + 1])
        out[indices[listed]] = values[listed]
        out[~self.may_touch(np.full(4 * self.n, s), np.arange(4 * self.n))] = -np.inf
        return out

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Partners of every side in falling score, -1 where there are no more.

        Shapes: (4N, K); K = 4N for small puzzles, RANK_SOME for large ones; sparse scores list what they list.
        """
        sides = 4 * self.n
        width = sides if sides <= RANK_ALL else RANK_SOME
        out = np.full((sides, width), -1, dtype=np.int32)
        for s in range(sides):
            partners, _ = self._ranked_row(s, width)
            out[s, : len(partners)] = partners
        return out

    def _ranked_row(self, s: int, width: int) -> tuple[Ints, Floats]:
        """Up to `width` partners of a side in falling score, ties in rising number, and their scores."""
        if self._masked is not None:
            row = self._masked[s]
            if width < len(row):
                threshold = np.partition(row, len(row) - width)[len(row) - width]
                candidates = np.flatnonzero(row >= threshold)
            else:
                candidates = np.arange(len(row))
            values = row[candidates]
        else:
            indptr, indices, all_values = sparse_rows(self.scores)
            listed = slice(indptr[s], indptr[s + 1])
            candidates, values = indices[listed].astype(np.int64), all_values[listed]
            kept = self.may_touch(np.full(len(candidates), s), candidates) & (values > self.scores.floor)
            candidates, values = candidates[kept], values[kept]
        order = np.argsort(-values, kind="stable")[:width]
        order = order[values[order] > -np.inf]
        return candidates[order], values[order]

    @cached_property
    def best(self) -> tuple[Ints, Floats, Floats]:
        """(partner or -1, its score, the second best score) of every side; where there is none, the floor."""
        sides = 4 * self.n
        partner = np.full(sides, -1, dtype=np.int64)
        none = -np.inf if self._masked is not None else self.scores.floor
        first, second = np.full(sides, none, dtype=np.float32), np.full(sides, none, dtype=np.float32)
        for s in range(sides):
            partners, values = self._ranked_row(s, 2)
            if len(partners):
                partner[s], first[s] = partners[0], values[0]
            if len(partners) > 1:
                second[s] = values[1]
        return partner, first, second

    @cached_property
    def buddies(self) -> Ints:
        """The best buddy of every side, or -1: each is the other's best partner.

        Shapes: (4N,).
        """
        partner = self.best[0]
        mutual = (partner >= 0) & (partner[partner] == np.arange(len(partner)))
        return np.where(mutual, partner, -1)

    def edges(self, per_side: int) -> tuple[Ints, Ints, Floats]:
        """Pairs s < t that are among the `per_side` best partners of s or of t, with their scores.

        Shapes: three (M,), ordered by s, then t.
        """
        firsts, seconds, values = [], [], []
        for side in range(4 * self.n):
            partners, scores = self._ranked_row(side, per_side)
            firsts.append(np.minimum(side, partners))
            seconds.append(np.maximum(side, partners))
            values.append(scores)
        s, t, value = np.concatenate(firsts), np.concatenate(seconds), np.concatenate(values)
        _, kept = np.unique(s * 4 * self.n + t, return_index=True)
        return s[kept], t[kept], value[kept]

    @cached_property
    def _masked(self) -> Floats | None:
        """The dense matrix with -inf where sides may not touch; None for sparse scores."""
        if self.scores.dense is None:
            return None
        sides = np.arange(4 * self.n)
        return np.where(self.may_touch(sides[:, None], sides[None, :]), self.scores.dense, np.float32(-np.inf))
