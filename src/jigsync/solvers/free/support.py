"""What a whole placement is worth, and what speaks for each fragment's place.

    energy = - [ sum over pairs of (log_odds + BONUS - d^2 / 2) of their best agreeing hypothesis
                 - BONUS (fragments - components) ]                                            lower is better

A spanning tree of the components spends the prior odds once per merge; every further pair that agrees adds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from jigsync.solvers.free.growth import BONUS, Scene, agreement_inside

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STRANGE, HELD, MEMBERS = 0.35, 0.8, 4
"""A fragment less sure than STRANGE is a stranger where a component of MEMBERS or more is HELD together well, in the
median: a stranger finds some place along a large outline, and few true places are as bad in a good picture."""
STEEP: Final = 0.35
"""How log-odds of a fragment's place become a probability: neighbours' evidence is not independent."""


class Support(NamedTuple):
    """The pairs that agree with a placement. Shapes: i, j, gain (P,)."""

    i: Ints
    j: Ints
    gain: Floats


def support(scene: Scene, pose: Floats, component: Ints) -> Support:
    """The best agreeing hypothesis of every pair, where it is worth something."""
    evidence = scene.evidence
    rows, distance = agreement_inside(evidence, pose, component)
    gain = evidence.worth[rows] + BONUS - distance / 2
    i, j = evidence.links.i[rows], evidence.links.j[rows]
    order = np.lexsort((-gain, np.maximum(i, j), np.minimum(i, j)))
    low, high, gain = np.minimum(i, j)[order], np.maximum(i, j)[order], gain[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    keep = first & (gain > 0)
    return Support(low[keep], high[keep], gain[keep])


def energy(found: Support, component: Ints) -> float:
    """Of a placement; lower is better."""
    placed = component[component >= 0]
    merges = len(placed) - len(np.unique(placed))
    return -float(found.gain.sum() - BONUS * merges)


def confidences(found: Support, component: Ints) -> Floats:
    """(N,) the probability that a fragment lies right towards its component: from what speaks for its place."""
    n = len(component)
    total = np.bincount(found.i, weights=found.gain, minlength=n) + np.bincount(
        found.j, weights=found.gain, minlength=n
    )
    placed = component >= 0
    members = np.bincount(component[placed], minlength=n)
    alone = placed & (members[np.maximum(component, 0)] == 1)
    return np.where(placed & ~alone, expit(STEEP * (total - 2 * BONUS)), 0.0)


def without_strangers(found: Support, component: Ints, pinned: NDArray[np.bool_]) -> tuple[Support, Ints]:
    """The placement without fragments that lie in a good component by accident, the least sure first."""
    component = component.copy()
    while True:
        sure = confidences(found, component)
        worst, least = -1, STRANGE
        for label in np.unique(component[component >= 0]):
            members = np.flatnonzero(component == label)
            open_to_doubt = members[~pinned[members]]
            if len(members) < MEMBERS or np.median(sure[members]) < HELD or not len(open_to_doubt):
                continue
            k = open_to_doubt[np.argmin(sure[open_to_doubt])]
            if sure[k] < least:
                worst, least = int(k), float(sure[k])
        if worst < 0:
            return found, component
        component[worst] = -1
        kept = (found.i != worst) & (found.j != worst)
        found = Support(found.i[kept], found.j[kept], found.gain[kept])
