"""The energy of a placement under side scores, in plain numpy: what every solver minimises and every test checks.

    score(arrangement) = sum over touching sides (s, t) of score[s, t] + sum over sides s that face out of border[s]
    E(arrangement)     = - score(arrangement)

A slot without a fragment touches nothing. Turning the whole assembly does not change E. Searches that add up scores
maximise a *score*; what is called *energy* is minimised, everywhere, and only this file turns one into the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.sides import SideScores

Ints = NDArray[np.int64]


def sparse_rows(scores: SideScores) -> tuple[Ints, NDArray[np.int32], NDArray[np.float32]]:
    """(indptr, indices, values) of scores that are not dense."""
    if scores.indptr is None or scores.indices is None or scores.values is None:
        raise ValueError("these side scores are dense")
    return scores.indptr, scores.indices, scores.values


def score_pairs(scores: SideScores, s: Ints, t: Ints) -> NDArray[np.float64]:
    """score[s, t] of many pairs of sides, dense or sparse.

    Shapes: s, t (M,) -> (M,) float64.
    """
    if scores.dense is not None:
        return scores.dense[s, t].astype(np.float64)
    indptr, indices, values = sparse_rows(scores)
    width = 4 * scores.n
    rows = np.repeat(np.arange(width, dtype=np.int64), np.diff(indptr))
    keys = rows * width + indices  # ascending: rows ascend, and indices ascend within a row
    wanted = s * width + t
    if not len(keys):
        return np.full(len(wanted), scores.floor)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at].astype(np.float64), scores.floor)


def touching_sides(found: Arrangement) -> tuple[Ints, Ints]:
    """All touching pairs of sides of a placement, each once: the left or upper fragment's side first.

    Shapes: -> two arrays (M,).
    """
    cells, turns = found.fragments, found.turns
    firsts, seconds = [], []
    for bearing, first, second in ((z4.E, cells[:, :-1], cells[:, 1:]), (z4.S, cells[:-1], cells[1:])):
        both = (first >= 0) & (second >= 0)
        i, j = first[both], second[both]
        firsts.append(4 * i + (bearing - turns[i]) % 4)
        seconds.append(4 * j + (bearing + 2 - turns[j]) % 4)
    return np.concatenate(firsts), np.concatenate(seconds)


def outer_sides(found: Arrangement) -> Ints:
    """The sides that face out of the grid. Shapes: -> (M,)."""
    cells, turns = found.fragments, found.turns
    rims = ((z4.E, cells[:, -1]), (z4.N, cells[0]), (z4.W, cells[:, 0]), (z4.S, cells[-1]))
    return np.concatenate([4 * rim[rim >= 0] + (bearing - turns[rim[rim >= 0]]) % 4 for bearing, rim in rims])


def border_scores(scores: SideScores) -> NDArray[np.float32]:
    """(4N,) score of facing out of the grid, 0 where nothing is known."""
    return np.zeros(4 * scores.n, dtype=np.float32) if scores.border is None else scores.border


def placement_score(scores: SideScores, found: Arrangement) -> float:
    """The sum of the scores over all touching sides and those of the border; higher is better."""
    s, t = touching_sides(found)
    outer = border_scores(scores)[outer_sides(found)]
    return float(score_pairs(scores, s, t).sum() + outer.sum(dtype=np.float64))


def placement_energy(scores: SideScores, found: Arrangement) -> float:
    """The energy of a placement; lower is better."""
    return energy_of(placement_score(scores, found))


def energy_of(score: float) -> float:
    """The energy of what has this score: E = - score, and the score of what has this energy."""
    return -score
