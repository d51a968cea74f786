"""From costs of touching sides to measurements: all pairs for small puzzles, the best of every side for large ones.

    score of a pair of sides   logit(s, t) = w . f(s, t)                         measure/calibration.py
    as seen from s             log p(t | s) = logit(s, t) - normaliser(s)
    symmetric                  log p(s touches t) = (log p(t | s) + log p(s | t)) / 2

The features compare a cost with the other candidates of both sides, so that a large puzzle takes two passes over
blocks of rows: first every side's statistics, then its normaliser and its best candidates. Neither keeps a block.
Where all costs expand into products, `measure.shortlist` finds the candidates in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.calibration import Calibration, RowStats, features, log_normaliser, row_stats
from jigsync.measure.costs import Cost, Matrix
from jigsync.measure.shortlist import Shortlist, searchable, shortlist
from jigsync.values import z4
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle

DENSE_FRAGMENTS: Final = 700
"""Up to here all 16 N^2 pairs of sides are kept (31 MB at 700); beyond, the best `TOP` of every side."""
TOP: Final = 48
BLOCK: Final = 512
MAX_MASS: Final = 0.98
"""The 16 ways two fragments can touch never take more than this of the pair's probability."""
MAX_BACKGROUND: Final = -8.0
"""Highest log-probability of a pair of sides that neither of the two lists among its best."""


def calibrated(
    puzzle: Puzzle, costs: Sequence[Cost], calibration: Calibration, own: NDArray[np.float32]
) -> Measurements:
    """Measurements from costs of touching sides; sparse beyond DENSE_FRAGMENTS fragments.

    Shapes: own (4N, G), the features of single sides.
    """
    n = len(puzzle)
    if n < 2:
        return Measurements.from_sides_log_p(puzzle.ids, np.full((4 * n, 4 * n), -np.inf, dtype=np.float32))
    if n > DENSE_FRAGMENTS:
        return _sparse(puzzle, costs, calibration, own)
    log_cost, stats = dense_log_costs(costs, n)
    log_p, none = dense_log_p(log_cost, stats, calibration, own)
    return Measurements.from_sides_log_p(puzzle.ids, log_p, border=none)


def dense_log_costs(costs: Sequence[Cost], n: int) -> tuple[list[Matrix], list[RowStats]]:
    """Logarithms of all costs, +inf between sides of one fragment, and their row statistics.

    Shapes: (4N, 4N) each.
    """
    block = slice(0, z4.ORDER * n)
    values = [np.log(_block(cost, block)) for cost in costs]
    return values, [row_stats(value) for value in values]


def dense_features(log_cost: Sequence[Matrix], stats: Sequence[RowStats]) -> NDArray[np.float32]:
    """Features of all pairs of sides, for fitting; not finite between sides of one fragment.

    Shapes: -> (4N, 4N, 3 K).
    """
    rows, cols = np.ogrid[: len(log_cost[0]), : len(log_cost[0])]
    return np.concatenate([features(value, rows, cols, s) for value, s in zip(log_cost, stats, strict=True)], axis=-1)


def dense_log_p(
    log_cost: Sequence[Matrix], stats: Sequence[RowStats], calibration: Calibration, own: NDArray[np.float32]
) -> tuple[Matrix, Matrix]:
    """log p(s touches t) of all pairs of sides, and `_on_border`. Shapes: -> (4N, 4N), symmetric; (4N,)."""
    logits = _logits(log_cost, slice(0, len(log_cost[0])), stats, calibration)
    none = calibration.no_neighbour(own)
    normaliser = log_normaliser(logits, none)
    forward = logits - normaliser[:, None]
    log_p = (forward + forward.T) / np.float32(2)
    n = len(log_p) // z4.ORDER
    mass = np.exp(log_p).reshape(n, z4.ORDER, n, z4.ORDER).sum(axis=(1, 3))
    mass = np.maximum(mass, mass.T)  # which differ by rounding
    log_p -= np.repeat(np.repeat(_excess(mass), z4.ORDER, axis=0), z4.ORDER, axis=1)
    return np.asarray(log_p), _on_border(none)


def _on_border(none: Matrix) -> Matrix:
    """log p(a side lies on the picture's border) by what the side alone tells, up to a common factor of the odds.

    What its candidates tell is in their scores already. Counted twice, it drives the blank sides of a plain backdrop,
    of which none has a partner of its own, out to the border. Shapes: (4N,) -> (4N,).
    """
    return np.asarray(-np.logaddexp(np.float32(0), -none), dtype=np.float32)


def _excess(mass: NDArray[np.floating]) -> NDArray[np.float32]:
    """What to take off the log-probabilities of pairs whose 16 probabilities sum to `mass`. Shapes: any."""
    return np.asarray(np.log(np.maximum(mass / MAX_MASS, 1.0)), dtype=np.float32)


def _block(cost: Cost, block: slice) -> Matrix:
    """cost + noise of a block of sides against all, +inf between sides of one fragment. Shapes: -> (B, 4N)."""
    value = cost.rows(block) + np.float32(cost.noise)
    value[own_sides(block)] = np.inf
    return np.asarray(value)


def own_sides(block: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the entries of a block of rows that are between sides of one fragment. Shapes: (B, 1), (B, 4)."""
    rows = np.arange(block.start, block.stop)
    return (rows - block.start)[:, None], (rows // z4.ORDER * z4.ORDER)[:, None] + np.arange(z4.ORDER)


def _logits(
    log_cost: Sequence[Matrix], block: slice, stats: Sequence[RowStats], calibration: Calibration
) -> NDArray[np.float32]:
    """w . f of a block of sides against all, -inf between sides of one fragment.

    With `level`, `lead` and `best` the weights of a cost D, m the medians, l the least and g the distance from the
    least to the second, and u = level m / 2 + lead l, the three features sum up to

        (level + 2 lead) D(s, t) - u_s - u_t - (lead + best) (g_s [t is the least of s] + g_t [s is the least of t])

    Shapes: log_cost (B, 4N) each -> (B, 4N). The log costs between sides of one fragment are overwritten.
    """
    logits = np.zeros_like(log_cost[0])
    own, rows = own_sides(block), np.arange(block.start, block.stop)
    for value, s, (level, lead, best) in zip(log_cost, stats, calibration.by_cost, strict=True):
        value[own] = 0
        logits += value * np.float32(level + 2 * lead)
        offset = (np.float32(level / 2) * s.median + np.float32(lead) * s.least).astype(np.float32)
        logits -= offset[block, None]
        logits -= offset
        bonus = np.float32(lead + best) * (s.second - s.least)
        logits[np.arange(len(rows)), s.which[block]] -= bonus[block]
        columns = np.flatnonzero((s.which >= block.start) & (s.which < block.stop))
        logits[s.which[columns] - block.start, columns] -= bonus[columns]
    logits[own] = -np.inf
    return logits


def _sparse(puzzle: Puzzle, costs: Sequence[Cost], calibration: Calibration, own: NDArray[np.float32]) -> Measurements:
    """The TOP best candidates of every side, from a shortlist where all costs can be looked up."""
    none, quick = calibration.no_neighbour(own), searchable(costs, calibration)
    found = shortlist(quick, calibration, none) if quick else _all(costs, calibration, none)
    top = min(TOP, found.cols.shape[1])
    best = np.argpartition(found.logits, found.cols.shape[1] - top, axis=1)[:, found.cols.shape[1] - top :]
    cols, kept = np.take_along_axis(found.cols, best, axis=1), np.take_along_axis(found.logits, best, axis=1)
    return _listed(puzzle, cols, kept, found.normaliser, _on_border(none))


def _all(costs: Sequence[Cost], calibration: Calibration, none: Matrix) -> Shortlist:
    """All pairs, in two passes over blocks of rows: statistics of every side first, then its TOP best candidates."""
    sides = len(none)
    blocks = [slice(start, min(start + BLOCK, sides)) for start in range(0, sides, BLOCK)]
    # Order statistics commute with the logarithm, which so is taken of three numbers a side.
    parts = [[row_stats(_block(cost, block)).log() for cost in costs] for block in blocks]
    stats = [RowStats.join(column) for column in zip(*parts, strict=True)]
    top = min(TOP, sides - z4.ORDER)
    cols = np.empty((sides, top), dtype=np.int64)
    kept = np.empty((sides, top), dtype=np.float32)
    normaliser = np.empty(sides, dtype=np.float32)
    for block in blocks:
        values = [_block(cost, block) for cost in costs]
        logits = _logits([np.log(value, out=value) for value in values], block, stats, calibration)
        normaliser[block] = log_normaliser(logits, none[block])
        cols[block] = np.argpartition(logits, sides - top, axis=1)[:, sides - top :]
        kept[block] = np.take_along_axis(logits, cols[block], axis=1)
    return Shortlist(cols, kept, normaliser)


def _listed(
    puzzle: Puzzle, cols: NDArray[np.int64], logits: Matrix, normaliser: Matrix, border: Matrix
) -> Measurements:
    """Sparse rows from the kept candidates; a pair of sides kept by one of the two is listed for both.

    Features are symmetric, so the logit of (t, s) is that of (s, t).
    Shapes: cols, logits (4N, TOP), normaliser, border (4N,).
    """
    sides, top = cols.shape
    s, t = np.repeat(np.arange(sides), top), cols.ravel()
    key, first = np.unique(np.minimum(s, t) * sides + np.maximum(s, t), return_index=True)
    s, t = np.divmod(key, sides)
    log_p = logits.ravel()[first] - (normaliser[s] + normaliser[t]) / np.float32(2)
    _, pair = np.unique(s // z4.ORDER * len(puzzle) + t // z4.ORDER, return_inverse=True)
    mass: NDArray[np.float64] = np.asarray(np.bincount(pair, weights=np.exp(log_p)), dtype=np.float64)
    log_p = log_p - _excess(mass)[pair]
    s, t, log_p = np.concatenate([s, t]), np.concatenate([t, s]), np.concatenate([log_p, log_p])
    order = np.argsort(s * sides + t)
    background = min(float(np.quantile(log_p, 0.02)), MAX_BACKGROUND)
    return Measurements.from_sides_log_p(
        puzzle.ids,
        indptr=np.searchsorted(s[order], np.arange(sides + 1)),
        indices=t[order],
        values=log_p[order],
        background=background,
        border=border,
    )
