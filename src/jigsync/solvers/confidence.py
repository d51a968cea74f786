"""How sure the place of each fragment is: a probability that is fitted on solved puzzles, not guessed.

A fragment is right when its region is right and it is right within its region:

    p_i = m_i^a  /  (1 + exp(-(b + w . f_i)))

    m_i   share of the decoder's draws around the best placement in which fragment i keeps slot and turns
    f_i   region's and puzzle's mean log-odds of m, region's and puzzle's mean margin of the touching sides

where the margin of touching sides (s, t) is score[s, t] minus the best score that s or t has with any other side, and
a region is what REACH rounds of averaging with touching fragments see. a and w are at least 0, so that p_i never falls
when anything looks better. "Right" is meant up to the global turn, which `Gauge` speaks about. `jigsync
calibrate-confidence` fits the six numbers and writes `confidence.json`; `jigsync reproduce reliability` checks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from jigsync.solvers.energy import score_pairs, touching_sides
from jigsync.solvers.table import SideTable
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import FormatError
from jigsync.values.sides import SideScores

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-confidence/1"
FEATURES: Final = ("region_drawn", "puzzle_drawn", "region_margin", "puzzle_margin")
REACH: Final = 3
LEAST_SHARE: Final = 1 / 256
"""A share is known to half a draw of 128."""
LARGEST_MARGIN: Final = 4.0
"""Nats; beyond, a margin says no more."""


class Seen(NamedTuple):
    """What the confidence of N fragments is computed from. Shapes: log_share (N,), features (N, 4)."""

    log_share: Floats
    features: Floats


@dataclass(frozen=True, eq=False)
class Confidence:
    """The fitted numbers: a, w (4,) and b."""

    power: float
    weights: Floats
    bias: float

    def of(self, seen: Seen) -> Floats:
        """(N,) probabilities that slot and turns are right."""
        return np.exp(_log_p(np.array([*self.weights, self.bias, self.power]), seen))


def observe(scores: SideScores, found: Arrangement, marginals: Floats) -> Seen:
    """Looks at a placement.

    Shapes: marginals (N,).
    """
    n = found.n
    s, t = touching_sides(found)
    i, j = s // 4, t // 4
    share = np.clip(marginals, LEAST_SHARE, 1 - LEAST_SHARE)
    drawn = np.log(share / (1 - share))
    which, best, second = SideTable(scores, upright=False).best
    others = np.maximum(np.where(which[s] == t, second[s], best[s]), np.where(which[t] == s, second[t], best[t]))
    of_seams = np.clip(score_pairs(scores, s, t) - others, -LARGEST_MARGIN, LARGEST_MARGIN)
    seams = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
    margin = (np.bincount(i, of_seams, n) + np.bincount(j, of_seams, n)) / np.maximum(seams, 1)
    placed = found.slots >= 0
    columns = []
    for own in (drawn, margin):
        region = own
        for _ in range(REACH):
            region = (region + np.bincount(i, region[j], n) + np.bincount(j, region[i], n)) / (1 + seams)
        columns += [region, np.full(n, own[placed].mean() if placed.any() else 0.0)]
    return Seen(np.log(share), np.stack(columns, axis=1))


def confidences(scores: SideScores, found: Arrangement, marginals: Floats, pinned: Iterable[int] = ()) -> Floats:
    """(N,) calibrated confidences of a placement: 0 for an unplaced fragment, 1 for a pinned one."""
    p = shipped().of(observe(scores, found, marginals))
    p[found.slots < 0] = 0.0
    p[list(pinned)] = 1.0
    if found.grid.size == 1:
        p[found.slots >= 0] = 1.0  # up to the global turn there is nothing to get wrong
    return p


@cache
def shipped() -> Confidence:
    """The numbers in the package."""
    data = json.loads(files("jigsync.weights").joinpath("confidence.json").read_text(encoding="utf-8"))
    if data.get("format") != FORMAT or data.get("features") != list(FEATURES):
        raise FormatError(f"The shipped confidence.json must be {FORMAT!r} with the features {', '.join(FEATURES)}.")
    return Confidence(float(data["power"]), np.array(data["weights"], dtype=np.float64), float(data["bias"]))


def fit(seen: Seen, right: NDArray[np.bool_], weight: Floats, ridge: float = 1e-3) -> Confidence:
    """Maximum likelihood with a small ridge, a and w at least 0.

    Shapes: right, weight (N,): whether each fragment was right, and how much it counts.
    """
    share = weight / weight.sum()

    def loss(theta: Floats) -> tuple[float, Floats]:
        log_p = _log_p(theta, seen)
        log_not = np.log(-np.expm1(log_p))
        value = -float(np.dot(share, np.where(right, log_p, log_not))) + ridge * float(np.dot(theta, theta)) / 2
        by_log_p = -share * np.where(right, 1.0, -np.exp(log_p - log_not))
        by_logit = by_log_p * -np.expm1(-np.logaddexp(0, -_logit(theta, seen)))
        gradient = np.append(by_logit @ seen.features, [by_logit.sum(), by_log_p @ seen.log_share])
        return value, gradient + ridge * theta

    k = len(FEATURES)
    bounds = [*[(0.0, None)] * k, (None, None), (0.0, None)]
    found = minimize(loss, np.append(np.zeros(k + 1), 1.0), jac=True, method="L-BFGS-B", bounds=bounds)
    theta: Floats = np.asarray(found.x)
    return Confidence(float(theta[-1]), theta[:k], float(theta[k]))


def _logit(theta: Floats, seen: Seen) -> Floats:
    return np.asarray(seen.features @ theta[:-2] + theta[-2])


def _log_p(theta: Floats, seen: Seen) -> Floats:
    """log p_i of theta = (w, b, a), never quite 0."""
    return np.asarray(np.minimum(theta[-1] * seen.log_share - np.logaddexp(0, -_logit(theta, seen)), -1e-9))
