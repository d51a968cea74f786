"""What speaks for relative poses: hypotheses from both sides, and the loops that they close.

A loop of three or four hypotheses that closes is no accident. With S the covariance of what a loop leaves over, e, and
V the space of poses that two fragments which touch could have,

    P(h | loop) / P(not h | loop) = odds(h) (1 + p_1 p_2 .. (N(e; 0, S) V - 1) / L)

where p are the probabilities of the loop's other hypotheses and L is the number of loops that h could close: the best
of many closes by chance. The best loop of each hypothesis counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from jigsync.solvers.free import motion
from jigsync.solvers.free.links import Links, composed, mahalanobis
from jigsync.values.hypotheses import PairHypotheses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPACE: Final = 2.5
"""Two fragments that touch have their centres within a square of this many sizes."""
MOST_BOOST: Final = 8.0
"""Most log-odds that a loop can add: repeated texture closes loops, too."""
TOUCHING: Final = 2.6
"""Pairs that touch, per fragment, at most."""
PATHS: Final = 200_000
"""Most two-step paths that are looked at for loops of four; those of the least probability are left out."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """K hypotheses from both sides: row k + K is row k said the other way round.

    Attributes:
        n: number of fragments.
        links: (2K,) rows, sorted by nothing.
        covariance: (2K, 3, 3) of i_from_j.
        worth: (2K,) log-odds, less what all of them claim too much.
        boost: (2K,) what the best loop adds to them.
        start, order: rows of fragment i are order[start[i] : start[i + 1]].
    """

    n: int
    links: Links
    covariance: Floats
    worth: Floats
    boost: Floats
    start: Ints
    order: Ints

    @classmethod
    def of(cls, hypotheses: PairHypotheses, size: float, loose: Floats) -> Evidence:
        """Evidence from hypotheses.

        Args:
            size: px, of the median fragment.
            loose: (3,) standard deviations that every hypothesis is off by beyond what it says.
        """
        both = hypotheses.joined(hypotheses.reversed())
        links = Links.of(both)
        spread = np.linalg.inv(links.information + 1e-9 * np.eye(3)) + np.diag(loose**2)
        covariance = spread.astype(np.float64)
        worth = _planar(both.log_odds, hypotheses.n)
        once = len(hypotheses)
        boost = _boost(hypotheses.n, links, covariance, worth, once, size)
        order = np.argsort(links.i, kind="stable")
        start = np.searchsorted(links.i[order], np.arange(hypotheses.n + 1))
        return cls(hypotheses.n, links, covariance, worth, np.tile(boost, 2), start, order)

    @property
    def once(self) -> int:
        """K."""
        return len(self.worth) // 2


def _planar(log_odds: Floats, n: int) -> Floats:
    """Log-odds that claim no more than TOUCHING pairs per fragment: if they do, all of them are shifted alike.

    Fragments that touch are a planar graph, which has fewer than 3 N edges. Shapes: (2K,) -> (2K,).
    """
    most = 2 * TOUCHING * n  # every hypothesis is there from both sides
    if expit(log_odds).sum() <= most:
        return log_odds
    shift = brentq(lambda by: float(expit(log_odds - by).sum()) - most, 0.0, float(log_odds.max()) + 40.0)
    return np.asarray(log_odds - shift)


def _boost(n: int, links: Links, covariance: Floats, log_odds: Floats, once: int, size: float) -> Floats:
    """(K,) the largest log-odds that a loop of three or four adds to each hypothesis."""
    boost = np.zeros(once)
    if once < 3:
        return boost
    probability = expit(log_odds)
    space = float(np.log((SPACE * size) ** 2 * 2 * np.pi))
    first, second = _paths(n, links, probability)
    pose, spread = composed(links.i_from_j[first], covariance[first], links.i_from_j[second], covariance[second])
    ends = links.i[first] * n + links.j[second]

    def raise_by(rows: list[Ints], density: Floats, chances: Floats) -> None:
        p = [probability[row] for row in rows]
        for k, row in enumerate(rows):
            others = np.prod([part for at, part in enumerate(p) if at != k], axis=0)
            closes = np.expm1(np.clip(density, 0.0, 20.0))
            gain = np.log1p(others * closes / np.maximum(chances[row % once], 1.0))
            np.maximum.at(boost, row % once, np.minimum(gain, MOST_BOOST))

    def weighed(rows: list[Ints]) -> Floats:
        """(K,) loops of each hypothesis, each counted by the probability that its other hypotheses are true."""
        total = np.zeros(once)
        for k, row in enumerate(rows):
            others = np.prod([probability[part] for at, part in enumerate(rows) if at != k], axis=0)
            total += np.bincount(row % once, weights=others, minlength=once)
        return total

    # three: a path and a hypothesis with the same ends
    path, direct = _join(ends, links.i * n + links.j)
    error = motion.difference(pose[path], links.i_from_j[direct])
    density = _log_density(error, spread[path] + covariance[direct]) + space
    loop = [first[path], second[path], direct]
    raise_by(loop, density, weighed(loop) / 2)  # every loop is found from both sides
    # four: two paths with the same ends by different middles
    one, other = _join(ends, ends)
    differ = (links.j[first[one]] < links.j[first[other]]) & (links.i[first[one]] < links.j[second[one]])
    one, other = one[differ], other[differ]
    error = motion.difference(pose[one], pose[other])
    chances = weighed([first[one], second[one], first[other], second[other]])
    near = np.hypot(*error[:, :2].T) < SPACE * size
    one, other, error = one[near], other[near], error[near]
    density = _log_density(error, spread[one] + spread[other]) + space
    raise_by([first[one], second[one], first[other], second[other]], density, chances)
    return boost


def _paths(n: int, links: Links, probability: Floats) -> tuple[Ints, Ints]:
    """Rows (a <- b, b <- c) with three different fragments, the most probable PATHS of them."""
    first, second = _join(links.j, links.i)
    keep = links.i[first] != links.j[second]
    first, second = first[keep], second[keep]
    if len(first) > PATHS:
        p = probability[first] * probability[second]
        best = np.argpartition(-p, PATHS)[:PATHS]
        first, second = first[best], second[best]
    return first, second


def _join(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """All (k, l) with left[k] = right[l]."""
    order = np.argsort(right, kind="stable")
    low = np.searchsorted(right[order], left)
    count = np.searchsorted(right[order], left, side="right") - low
    k = np.repeat(np.arange(len(left)), count)
    at = np.arange(len(k)) - np.repeat(np.cumsum(count) - count, count)
    return k, order[np.repeat(low, count) + at]


def _log_density(error: Floats, covariance: Floats) -> Floats:
    """log N(e; 0, C)."""
    _, logdet = np.linalg.slogdet(covariance)
    return np.asarray(-0.5 * (mahalanobis(error, covariance) + logdet + 3 * np.log(2 * np.pi)))
