"""Which pair hypotheses are true, and how many of the true contacts have one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.placement import Placement
from jigsync.values.pose import Pose

TURN: Final = math.radians(10)
SHARE: Final = 0.11
"""How far a true hypothesis may be off, as a share of the fragments' size: what a refinement over all pairs mends."""


@dataclass(frozen=True)
class HypothesisScores:
    """Of one puzzle.

    Attributes:
        best: share of true ones among the N likeliest of N fragments.
        recall: share of true contacts with a true hypothesis.
    """

    best: float
    recall: float


def are_true(found: PairHypotheses, truth: Sequence[Pose], size: float) -> NDArray[np.bool_]:
    """Is each hypothesis near the true i_from_j, within TURN and SHARE of the size in pixels? Shapes: -> (H,)."""
    if not len(found):
        return np.zeros(0, dtype=bool)
    true = [truth[i].between(truth[j]) for i, j in zip(found.i, found.j, strict=True)]
    turn = np.abs(angles.wrap(found.angle - np.array([pose.angle for pose in true])))
    away = np.hypot(*(found.xy - np.array([pose.xy for pose in true])).T)
    return np.asarray((turn < TURN) & (away < SHARE * size))


def poses_of(placement: Placement, ids: Sequence[str]) -> list[Pose]:
    """canvas_from_frag in the order of the ids; all must be placed."""
    return [pose for name in ids if (pose := placement[name].pose) is not None]


def hypothesis_scores(
    found: PairHypotheses, true: NDArray[np.bool_], contacts: Sequence[tuple[int, int]]
) -> HypothesisScores:
    """Scores of hypotheses of which `are_true` says which are; contacts are pairs of numbers, the smaller one first."""
    likeliest = np.argsort(-found.log_odds, kind="stable")[: found.n]
    low, high = np.minimum(found.i, found.j)[true], np.maximum(found.i, found.j)[true]
    hit = set(zip(low.tolist(), high.tolist(), strict=True))
    return HypothesisScores(
        float(true[likeliest].sum() / max(found.n, 1)),
        len(hit & set(contacts)) / max(len(set(contacts)), 1),
    )
