"""Loops of three and four hypotheses that close: poses that agree by chance are rare.

    i_from_j o j_from_k = i_from_k                     three
    i_from_j o j_from_k = i_from_l o l_from_k          four

within what the covariances of the poses add up to. Contacts of a picture make loops of three where three fragments
meet (tears) and of four where four meet (grids); a wrong hypothesis closes few. With p the belief in the other
hypotheses of a loop, one that is in loops at all has

    l'_e = l_e + log(LONELY + sum_closed GAIN p_f p_g ..),       p from l', a few times over

The paper's cycle filter halves the weight of whatever is in an open triangle, right or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.sync.graph import Floats, Ints, ranges, strongest
from jigsync.sync.hypotheses import doubted, graph_of, probabilities
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses

GATE: Final = 11.3
"""A loop closes when its chi-squared, of three degrees of freedom, is below this: 99 % of the true ones."""

GAIN_3: Final = 50.0
GAIN_4: Final = 3.0
LONELY: Final = 0.1
"""How much likelier a closed loop is for a true hypothesis than for a wrong one, and how much likelier no loop is."""

ROUNDS: Final = 3

STRONGEST: Final = 12
"""Hypotheses of a fragment that may be in a loop."""


@dataclass(frozen=True, eq=False)
class Loops:
    """Loops, each once.

    Attributes:
        members: (K, 3) or (K, 4) hypothesis numbers.
        closes: (K,) do their poses agree?
        gain: how much likelier a loop closes when all of them are true.
    """

    members: Ints
    closes: NDArray[np.bool_]
    gain: float


def believed(found: PairHypotheses, pair: Ints) -> Floats:
    """(H,) log-odds of ordered hypotheses after their loops have been looked at."""
    p = probabilities(pair, found.log_odds)
    every = find_loops(found, p)
    looped = np.zeros(len(found), dtype=bool)
    for loops in every:
        looped[loops.members] = True
    alone = np.where(looped, LONELY, 1.0)
    log_odds = found.log_odds
    for _ in range(ROUNDS):
        support = np.zeros(len(found))
        for loops in every:
            closed = loops.members[loops.closes]
            for k in range(closed.shape[1]):
                others = loops.gain * p[np.delete(closed, k, axis=1)].prod(axis=1)
                support += np.bincount(closed[:, k], others, len(found))
        log_odds = found.log_odds + np.log(alone + support)
        p = probabilities(pair, log_odds)
    return log_odds


def find_loops(found: PairHypotheses, p: Floats) -> tuple[Loops, Loops]:
    """All loops of three and of four among the STRONGEST of each fragment by p; found is ordered."""
    kept = np.flatnonzero(strongest(graph_of(found, p), STRONGEST))
    part = found.keep(kept)
    ways = _both_ways(doubted(part))
    a_b, b_c = _wedges(ways, found.n, len(part))
    path = _composed(ways, a_b, b_c)
    middle, key = ways.j[a_b], path.i * found.n + path.j
    number = np.tile(kept, 2)
    # Three: an edge a-c beside the wedge; of the two ways round the one with b < c.
    by_key = np.argsort(part.i * found.n + part.j, kind="stable")
    edges = (part.i * found.n + part.j)[by_key]
    low = np.searchsorted(edges, key, side="left")
    count = np.where(middle < path.j, np.searchsorted(edges, key, side="right") - low, 0)
    wedge, edge = np.repeat(np.arange(len(key)), count), by_key[ranges(low, count)]
    members = number[np.stack([a_b[wedge], b_c[wedge], edge], axis=1)]
    three = Loops(members, _same(path, wedge, ways, edge), GAIN_3)
    # Four: two wedges from a to c by different middles.
    order = np.argsort(key, kind="stable")
    first = np.searchsorted(key[order], key[order], side="left")
    before = np.arange(len(order)) - first
    one, other = order[np.repeat(np.arange(len(order)), before)], order[ranges(first, before)]
    apart = middle[one] != middle[other]
    one, other = one[apart], other[apart]
    members = number[np.stack([a_b[one], b_c[one], b_c[other], a_b[other]], axis=1)]
    return three, Loops(members, _same(path, one, path, other), GAIN_4)


@dataclass(frozen=True, eq=False)
class Steps:
    """Relative poses i_from_j and their covariances. Shapes: (K,), (K,), (K,), (K, 2), (K, 3, 3)."""

    i: Ints
    j: Ints
    angle: Floats
    xy: Floats
    covariance: Floats


def _both_ways(found: PairHypotheses) -> Steps:
    """All hypotheses as they are said, then all said from the other side."""
    both = found.joined(found.reversed())
    return Steps(both.i, both.j, both.angle, both.xy, np.linalg.inv(both.information))


def _wedges(ways: Steps, n: int, forth: int) -> tuple[Ints, Ints]:
    """Steps a <- b, then b <- c, with a the smallest: two (K,) of numbers into the steps."""
    by_first = np.argsort(ways.i, kind="stable")
    start = np.searchsorted(ways.i[by_first], np.arange(n + 1))
    a_b = np.arange(forth)  # said from the lower-numbered: a < b
    fan = np.diff(start)[ways.j[a_b]]
    a_b, b_c = np.repeat(a_b, fan), by_first[ranges(start[ways.j[a_b]], fan)]
    smallest = ways.i[a_b] < ways.j[b_c]
    return a_b[smallest], b_c[smallest]


def _composed(ways: Steps, a_b: Ints, b_c: Ints) -> Steps:
    """a_from_c: the error of a_from_b moves c along with its angle, that of b_from_c is turned into a's frame."""
    angle, xy = ways.angle[a_b], ways.xy[b_c]
    by_first, by_second = np.tile(np.eye(3), (2, len(a_b), 1, 1))
    by_first[:, :2, 2] = angles.act(angle + angles.QUARTER, xy)
    by_second[:, :2, :2] = angles.matrix(angle)
    first = by_first @ ways.covariance[a_b] @ by_first.transpose(0, 2, 1)
    second = by_second @ ways.covariance[b_c] @ by_second.transpose(0, 2, 1)
    return Steps(
        ways.i[a_b],
        ways.j[b_c],
        angles.wrap(angle + ways.angle[b_c]),
        ways.xy[a_b] + angles.act(angle, xy),
        first + second,
    )


def _same(left: Steps, k: Ints, right: Steps, m: Ints) -> NDArray[np.bool_]:
    """(K,) bool: do left[k] and right[m] say the same pose?"""
    off = np.concatenate([left.xy[k] - right.xy[m], angles.wrap(left.angle[k] - right.angle[m])[:, None]], axis=1)
    covariance = left.covariance[k] + right.covariance[m]
    chi2 = np.einsum("ka,ka->k", off, np.linalg.solve(covariance, off[..., None])[..., 0])
    return np.asarray(chi2 <= GATE)
