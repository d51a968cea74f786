"""Pair hypotheses as the edges of a measurement graph.

    p = e^l / (1 + sum e^l)             the hypotheses of a pair exclude each other and "no neighbours"
    d = R(theta_i) xy                   what a hypothesis says in the canvas
    W = R(theta_i) L R(theta_i)^T       what it knows of the place whatever the angle, L = L_xy - L_xa L_aa^-1 L_ax

L is marginalised, not conditioned on the angle: synchronized angles are off by about as much as measured ones, and the
joint fit (`pose_graph`) uses the full information.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.sync.graph import Floats, Graph, Ints
from jigsync.sync.translation import Displacements
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses

TOUCHING: Final = 2.0
"""Pairs of neighbours per fragment: at most 3 in a plane, 2 in a large grid."""

LEAST_ANGLE: Final = math.radians(1.5)
LEAST_PLACE: Final = 0.02
"""Standard deviations that no measurer is believed to be better than before its poses were seen to fit each other:
radians, and a share of the distance between the two centres."""


def ordered(found: PairHypotheses) -> PairHypotheses:
    """The same hypotheses, each said from its lower-numbered fragment, as graphs want it; those said so come first."""
    forth = found.i < found.j
    return found.keep(forth).joined(found.keep(~forth).reversed())


def pairs_of(found: PairHypotheses) -> Ints:
    """(H,) a number of each hypothesis' unordered pair."""
    key = np.minimum(found.i, found.j) * found.n + np.maximum(found.i, found.j)
    return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)


def probabilities(pair: Ints, log_odds: Floats) -> Floats:
    """(H,) probability of each hypothesis against the others of its pair and against "no neighbours"."""
    top = np.zeros(int(pair.max(initial=-1)) + 1)  # the log-odds of "no neighbours"
    np.maximum.at(top, pair, log_odds)
    odds = np.exp(log_odds - top[pair])
    return np.asarray(odds / (np.exp(-top) + np.bincount(pair, odds))[pair])


def sobered(pair: Ints, log_odds: Floats, n: int) -> Floats:
    """(H,) log-odds, lowered alike until no more pairs are expected to be neighbours than fragments in a plane have.

    Each hypothesis may have been judged on its own; of many candidates a share passes that no picture has room for.
    """
    def expected(lower: float) -> float:
        return float(probabilities(pair, log_odds - lower).sum())

    low, high = 0.0, 1.0
    if expected(0.0) <= TOUCHING * n:
        return log_odds
    while expected(high) > TOUCHING * n:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) > TOUCHING * n else (low, middle)
    return log_odds - high


def best_of_pairs(pair: Ints, score: Floats) -> NDArray[np.bool_]:
    """(H,) the hypothesis of the highest score of each pair; of equals the first."""
    order = np.lexsort((-score, pair))
    best = np.zeros(len(pair), dtype=bool)
    best[order[np.concatenate([[True], np.diff(pair[order]) != 0])[: len(order)]]] = True
    return best


def graph_of(found: PairHypotheses, weight: Floats) -> Graph:
    """Ordered hypotheses as parallel edges."""
    return Graph(found.n, found.i, found.j, weight)


def displacements(found: PairHypotheses, angle: Floats, weight: Floats) -> Displacements:
    """d and w W in the canvas. Shapes: angle (N,), weight (H,)."""
    cross, turn = found.information[:, :2, 2], found.information[:, 2, 2]
    known = np.divide(1.0, turn, out=np.zeros_like(turn), where=turn > 0)
    place = found.information[:, :2, :2] - known[:, None, None] * cross[:, :, None] * cross[:, None, :]
    rotation = angles.matrix(angle[found.i])
    turned = rotation @ place @ rotation.transpose(0, 2, 1)
    return Displacements(angles.act(angle[found.i], found.xy), weight[:, None, None] * turned)


def doubted(found: PairHypotheses) -> PairHypotheses:
    """The same hypotheses, none known better than LEAST_PLACE and LEAST_ANGLE, and none known worse than not at all.

    Information may be singular, as that of a bearing without a distance: a hypothesis is off by no more than its
    length, and its angle by no more than half a turn.
    """
    length = np.maximum(np.linalg.norm(found.xy, axis=1), np.finfo(float).tiny)
    least, most = np.zeros((2, len(found), 3, 3))
    least[:, 0, 0] = least[:, 1, 1] = (LEAST_PLACE * length) ** 2
    least[:, 2, 2] = LEAST_ANGLE**2
    most[:, 0, 0] = most[:, 1, 1] = 1.0 / length**2
    most[:, 2, 2] = 1.0 / math.pi**2
    covariance = np.linalg.inv(found.information + most) + least
    return replace(found, information=np.linalg.inv(covariance))
