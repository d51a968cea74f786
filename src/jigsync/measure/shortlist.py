"""The best candidates of every side of a large puzzle, found by blocked products instead of by comparing all in full.

Costs that expand into products can be had quickly for a tile of sides against sides (`Searchable.quick`). The part of a
logit that falls with such costs,

    rank(s, t) = sum over costs with w < 0 of w log quick(s, t)             w = level + 2 lead, measure/calibration.py

orders candidates nearly as the logit does. So of every side the COUNT candidates of highest rank are compared in full,
and of all others only a sample, which stands for them: its quantiles are the side's, and its weight, scaled up, is that
of everything not on the list. Time is the square of the number of sides for the products alone; memory is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.calibration import Calibration, Matrix, RowStats, log_normaliser
from jigsync.measure.costs import Cost
from jigsync.measure.parts import side_by_side
from jigsync.values import z4

Ints = NDArray[np.int64]
COUNT: Final = 128
"""Candidates of a side that are compared in full. Of 1 419 squares their logits hold 0.98 of the probability of the
best 48 of all, and the best one of 2 048 sides always (0.96 and 0.998 by the first cost alone)."""
SAMPLE: Final = 512
"""Sides that stand for all others: a median is known to a fiftieth of the ranks."""
ROWS, COLS = 256, 4096
"""Sides and candidates of a tile: 4 MB an array stays in the cache."""
PAIR_ROWS: Final = 64
"""Sides whose candidates are gathered at once: 128 candidates of 504 numbers each are 16 MB."""


@runtime_checkable
class Searchable(Cost, Protocol):
    """A cost that can be looked up without comparing all with all."""

    def quick(self, rows: slice, cols: slice) -> Matrix:
        """The cost, or one that orders candidates much as it does, from products. Shapes: -> (R, C)."""

    def against(self, rows: slice, sides: Ints) -> Matrix:
        """The cost of a block of sides against some. Shapes: R sides, (M,) -> (R, M)."""

    def pairs(self, rows: slice, sides: Ints) -> Matrix:
        """The cost of a block of sides, each against its own candidates. Shapes: R sides, (R, K) -> (R, K)."""


class Shortlist(NamedTuple):
    """The candidates of all sides. Shapes: cols (4N, COUNT) int64, logits (4N, COUNT), normaliser (4N,)."""

    cols: Ints
    logits: Matrix
    normaliser: Matrix


def shortlist(costs: Sequence[Searchable], calibration: Calibration, none: Matrix) -> Shortlist:
    """Candidates, their logits and the logarithm of everything's weight, as `Calibration` defines them.

    Shapes: none (4N,), the logit of "no neighbour".
    """
    sides = len(none)
    count = min(COUNT, sides - z4.ORDER)
    blocks = [slice(k, min(k + ROWS, sides)) for k in range(0, sides, ROWS)]
    cols = np.concatenate(side_by_side([partial(_ranked, costs, calibration, sides, count, rows) for rows in blocks]))
    sample = np.sort(np.random.default_rng(0).choice(sides, min(SAMPLE, sides), replace=False))
    small = [slice(k, min(k + PAIR_ROWS, sides)) for k in range(0, sides, PAIR_ROWS)]
    seen = side_by_side([partial(_compared, costs, calibration, cols, sample, rows) for rows in small])
    stats = [RowStats.join(column) for column in zip(*(part.stats for part in seen), strict=True)]
    made = side_by_side(
        [
            partial(_judged, part, cols[rows], sample, stats, calibration, none[rows], rows)
            for part, rows in zip(seen, small, strict=True)
        ]
    )
    logits, normaliser = (np.concatenate(column) for column in zip(*made, strict=True))
    return Shortlist(cols, logits, normaliser)


def searchable(costs: Sequence[Cost], calibration: Calibration) -> list[Searchable]:
    """The costs, if all of them can be looked up and one of them ranks; else none."""
    found = [cost for cost in costs if isinstance(cost, Searchable)]
    return found if len(found) == len(costs) and min(_weights(calibration)) < 0 else []


def _weights(calibration: Calibration) -> list[float]:
    """What the logit rises by when the logarithm of each cost does."""
    return [float(level + 2 * lead) for level, lead, _ in calibration.by_cost]


def _ranked(costs: Sequence[Searchable], calibration: Calibration, sides: int, count: int, rows: slice) -> Ints:
    """The `count` sides of highest rank for each of a block, in no order. Shapes: -> (R, count)."""
    weights = _weights(calibration)
    kept_cols, kept = [], []
    for start in range(0, sides, COLS):
        cols = slice(start, min(start + COLS, sides))
        rank = np.zeros((rows.stop - rows.start, cols.stop - cols.start), dtype=np.float32)
        for cost, weight in zip(costs, weights, strict=True):
            if weight < 0:
                value = cost.quick(rows, cols)
                value += np.float32(cost.noise)
                rank += np.float32(weight) * np.log(value, out=value)
        own = np.arange(rows.start, rows.stop)[:, None] // z4.ORDER == np.arange(cols.start, cols.stop) // z4.ORDER
        rank[own] = -np.inf
        best = _largest(rank, count)
        kept_cols.append(best + start)
        kept.append(np.take_along_axis(rank, best, axis=1))
    if len(kept) == 1:
        return kept_cols[0]
    best = _largest(np.concatenate(kept, axis=1), count)
    return np.take_along_axis(np.concatenate(kept_cols, axis=1), best, axis=1)


def _largest(value: Matrix, count: int) -> Ints:
    """Where the `count` largest of every row stand, all where there are no more. Shapes: (R, C) -> (R, count)."""
    if value.shape[1] <= count:
        return np.broadcast_to(np.arange(value.shape[1]), value.shape)
    return np.argpartition(value, value.shape[1] - count, axis=1)[:, value.shape[1] - count :]


class _Seen(NamedTuple):
    """A block of sides compared in full, costs added up as the logit adds them: all of it but what `pair_logits` takes.

    Shapes: listed (R, COUNT); sampled (R, M), -inf where that is listed already; stats; others (R,), the logarithm of
    how many sides each one of the sample stands for.
    """

    listed: Matrix
    sampled: Matrix
    stats: list[RowStats]
    others: Matrix


def _compared(costs: Sequence[Searchable], calibration: Calibration, cols: Ints, sample: Ints, rows: slice) -> _Seen:
    mine, own = cols[rows], np.arange(rows.start, rows.stop)[:, None]
    listing = np.zeros((len(own), len(cols)), dtype=bool)
    np.put_along_axis(listing, mine, True, axis=1)
    itself = own // z4.ORDER == sample // z4.ORDER
    known = listing[:, sample] | itself
    middle = (len(sample) - itself.sum(axis=1, keepdims=True)) // 2
    listed, sampled = (np.zeros((len(own), among.shape[-1]), dtype=np.float32) for among in (mine, sample))
    stats = []
    for cost, each in zip(costs, _weights(calibration), strict=True):
        weight, noise = np.float32(each), np.float32(cost.noise)
        few, some = np.log(cost.pairs(rows, mine) + noise), np.log(cost.against(rows, sample) + noise)
        listed += weight * few
        sampled += weight * some
        some[itself] = np.inf
        median = np.take_along_axis(np.sort(some, axis=1), middle, axis=1)[:, 0]
        some[known] = np.inf
        both = np.concatenate([few, some], axis=1)
        at = both.argmin(axis=1)[:, None]
        least = np.take_along_axis(both, at, axis=1)[:, 0]
        np.put_along_axis(both, at, np.inf, axis=1)
        which = np.take_along_axis(np.concatenate([mine, np.broadcast_to(sample, some.shape)], axis=1), at, axis=1)
        stats.append(RowStats(least, both.min(axis=1), median, which[:, 0]))
    sampled[known] = -np.inf
    others = np.maximum(len(cols) - z4.ORDER - mine.shape[1], 0) / np.maximum((~known).sum(axis=1), 1)
    with np.errstate(divide="ignore"):
        return _Seen(listed, sampled, stats, np.log(others).astype(np.float32))


def _judged(
    seen: _Seen,
    cols: Ints,
    sample: Ints,
    stats: Sequence[RowStats],
    calibration: Calibration,
    none: Matrix,
    rows: slice,
) -> tuple[Matrix, Matrix]:
    """Logits of a block's candidates, and the logarithm of the weight of all. Shapes: -> (R, COUNT), (R,)."""
    own = np.arange(rows.start, rows.stop)[:, None]
    logits = pair_logits(seen.listed, own, cols, stats, calibration)
    rest = pair_logits(seen.sampled, own, sample[None], stats, calibration) + seen.others[:, None]
    return logits, log_normaliser(np.concatenate([logits, rest], axis=1), none)


def pair_logits(weighted: Matrix, s: Ints, t: Ints, stats: Sequence[RowStats], calibration: Calibration) -> Matrix:
    """w . f of given pairs of sides from their weighted log costs, sum of (level + 2 lead) log D(s, t): what
    `probabilities._logits`, which has the formula, gives for all pairs of a block.

    Shapes: weighted (...), s and t broadcast to it -> (...).
    """
    out = weighted.copy()
    for each, (level, lead, best) in zip(stats, calibration.by_cost, strict=True):
        offset = (np.float32(level / 2) * each.median + np.float32(lead) * each.least).astype(np.float32)
        bonus = np.float32(lead + best) * (each.second - each.least)
        out -= offset[s] + offset[t]
        out -= bonus[s] * (each.which[s] == t) + bonus[t] * (each.which[t] == s)
    return out
