"""Steps of a grid as poses, and poses as steps: the adapters between cells and pair hypotheses.

    side s = (i, a) touches t = (j, b)    <->    i_from_j = (turns r, cell * step a),   b = a + 2 - r
    a sector of the vocabulary             ->    a pose along its centre line whose distance is hardly known

A side score is against one of the 176 relations of fragments that are no neighbours, log-odds are against all of them:

    log-odds = score - log 176

A unit step is known to STEP of a cell and, being a quarter turn, exactly in its angle; of a sector the bearing is known
to half its width and the distance to half of it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles, z4
from jigsync.values import vocabulary as v
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.sides import SideScores

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP: Final = 0.05
"""Standard deviation of a step, in cells. Solvers that take it for less reject true neighbours of worn fragments."""
ANGLE: Final = math.radians(2)
"""Standard deviation of the angle of a quarter turn, for solvers that know no quarter turns."""
LEAST: Final = -9.0
"""Lowest log-odds that are listed: fewer than one in eight thousand of such hypotheses is true."""
OF_A_PAIR: Final = 3
"""Most hypotheses of a pair."""
SKEW: Final = math.radians(20)
"""A hypothesis further from a quarter turn than this is no unit step."""
REACH: Final = (0.5, 1.6)
"""Distances of centres, in cells, that may be a unit step. Fragments that are cropped have centres off their cells'."""


def log_odds_of(score: Floats) -> Floats:
    """Side scores -> log-odds against all relations of fragments that are no neighbours."""
    return np.asarray(score - math.log(v.OTHERS))


def hypotheses_of_sides(scores: SideScores, cell: float) -> PairHypotheses:
    """The likeliest unit steps of every pair, each pair once. The unit is `cell` pixels a cell."""
    s, t, score = _listed(scores)
    i, j = s // z4.ORDER, t // z4.ORDER
    log_odds = log_odds_of(score)
    keep = (i < j) & (log_odds >= LEAST)
    keep[keep] = _best_of_pairs(i[keep] * scores.n + j[keep], log_odds[keep])
    s, t, i, j = s[keep], t[keep], i[keep], j[keep]
    a, b = s % z4.ORDER, t % z4.ORDER
    turns = (a + 2 - b) % z4.ORDER
    xy = cell * np.array([z4.bearing_xy(k) for k in range(z4.ORDER)], dtype=np.float64)[a]
    return _at_turns(scores.n, i, j, turns, xy, log_odds[keep], _exact(len(i), cell))


def hypotheses_of_relations(n: int, i: Ints, j: Ints, p: NDArray[np.floating], cell: float) -> PairHypotheses:
    """The likeliest relations of pairs, exact steps and sectors alike.

    Shapes: i, j (P,), p (P, 192) probabilities.
    """
    best = np.argsort(-p, axis=1, kind="stable")[:, :OF_A_PAIR]
    row = np.repeat(np.arange(len(i)), best.shape[1])
    relation = best.ravel()
    chance = np.clip(p[row, relation].astype(np.float64), 1e-12, 1 - 1e-6)
    log_odds = np.log(chance) - np.log1p(-chance)
    keep = log_odds >= LEAST
    row, relation, log_odds = row[keep], relation[keep], log_odds[keep]
    bucket, turns = v.bucket(relation), v.relative(relation)
    xy, information = cell * _OFFSETS[bucket], _exact(len(row), cell)
    sector = v.TIER[bucket] != v.NEAR
    if sector.any():
        information[sector] = _bearing_only(xy[sector])
    return _at_turns(n, i[row], j[row], turns, xy, log_odds, information)


def sides_of_hypotheses(found: PairHypotheses, cell: float, floor: float, unlisted: float) -> SideScores:
    """Side scores of the hypotheses that are unit steps: near a quarter turn, along a bearing, about a cell away.

    Args:
        cell: pitch in pixels.
        unlisted: log-odds of two sides of which no hypothesis speaks.
    """
    turns = angles.nearest_turns(found.angle)
    off = np.abs(angles.wrap(found.angle - turns * angles.QUARTER))
    length = np.hypot(*found.xy.T)
    bearing_xy = np.array([z4.bearing_xy(k) for k in range(z4.ORDER)], dtype=np.float64)
    along = found.xy @ bearing_xy.T
    a = along.argmax(axis=1)
    towards = along[np.arange(len(a)), a] / np.maximum(length, 1e-9)
    step = (
        (off <= SKEW) & (towards >= math.cos(math.pi / 4)) & (length >= REACH[0] * cell) & (length <= REACH[1] * cell)
    )
    b = (a + 2 - turns) % z4.ORDER
    s, t = (z4.ORDER * found.i + a)[step], (z4.ORDER * found.j + b)[step]
    score = np.maximum(found.log_odds[step] + math.log(v.OTHERS), floor)
    return _sparse(found.n, s, t, score, max(floor, unlisted + math.log(v.OTHERS)))


def _sparse(n: int, s: Ints, t: Ints, score: Floats, blank: float) -> SideScores:
    """Symmetric sparse rows; of several scores of one pair of sides the best."""
    width = z4.ORDER * n
    key = np.concatenate([s * width + t, t * width + s])
    both = np.concatenate([score, score])
    order = np.lexsort((-both, key))
    first = order[np.concatenate([[True], np.diff(key[order]) != 0])] if len(order) else order
    row, col = key[first] // width, key[first] % width
    indptr = np.searchsorted(row, np.arange(width + 1)).astype(np.int64)
    return SideScores(n, None, indptr, col.astype(np.int32), both[first].astype(np.float32), float(blank))


def _listed(scores: SideScores) -> tuple[Ints, Ints, Floats]:
    """All pairs of sides of different fragments that have a score of their own."""
    if scores.dense is not None:
        s, t = (part.ravel() for part in np.indices(scores.dense.shape))
        apart = s // z4.ORDER != t // z4.ORDER
        return s[apart], t[apart], scores.dense.ravel()[apart].astype(np.float64)
    assert scores.indptr is not None and scores.indices is not None and scores.values is not None
    s = np.repeat(np.arange(z4.ORDER * scores.n), np.diff(scores.indptr))
    return s, scores.indices.astype(np.int64), scores.values.astype(np.float64)


def _best_of_pairs(pair: Ints, log_odds: Floats) -> NDArray[np.bool_]:
    """The OF_A_PAIR likeliest of every pair."""
    order = np.lexsort((-log_odds, pair))
    rank = np.arange(len(order)) - np.searchsorted(pair[order], pair[order])
    kept = np.zeros(len(order), dtype=bool)
    kept[order[rank < OF_A_PAIR]] = True
    return kept


def _at_turns(
    n: int, i: Ints, j: Ints, turns: Ints, xy: Floats, log_odds: Floats, information: Floats
) -> PairHypotheses:
    angle = angles.wrap(turns * angles.QUARTER)
    return PairHypotheses(n, i, j, angle, xy, log_odds, information, turns.astype(np.int64))


def _exact(count: int, cell: float) -> Floats:
    """(count, 3, 3) information of steps that are known exactly but for wear."""
    place = 1.0 / (STEP * cell) ** 2
    return np.tile(np.diag([place, place, 1.0 / ANGLE**2]), (count, 1, 1))


def _bearing_only(xy: Floats) -> Floats:
    """(H, 3, 3) information of sectors: half of 45 degrees across, half of the distance along."""
    length = np.hypot(*xy.T)[:, None, None]
    unit = xy[:, :, None] / length
    along = unit @ unit.swapaxes(1, 2)
    across = np.eye(2) - along
    out = np.zeros((len(xy), 3, 3))
    out[:, :2, :2] = along / (0.5 * length) ** 2 + across / (math.tan(math.pi / 8) * length) ** 2
    out[:, 2, 2] = 1.0 / ANGLE**2
    return out


def _offsets() -> Floats:
    """(48, 2): where the middle of each bucket lies, in cells; a sector at the middle distance of its band."""
    out = np.empty((v.BUCKETS, 2))
    out[: v.NEAR_BUCKETS] = v.NEAR_OFFSETS[:, ::-1]
    middle = {3: 3.5, 5: 6.0, 8: 10.0}
    for bucket in range(v.NEAR_BUCKETS, v.BUCKETS):
        out[bucket] = middle[int(v.BAND[bucket, 0])] * v.SECTOR_XY[(bucket - v.NEAR_BUCKETS) % v.SECTORS]
    return out


_OFFSETS: Final = _offsets()
