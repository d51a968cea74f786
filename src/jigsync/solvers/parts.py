"""What hangs together, before any grid is thought of: clusters of fragments that the likeliest links join.

Kruskal's algorithm over links (`engine.problem.links`), the likeliest first. A link joins two clusters when no two
fragments would share a cell and everything that would touch is worth more than JOIN together. A whole picture comes out
as one cluster as large as its grid; two pictures, as two; a stranger stays alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jigsync.engine.problem import CompiledProblem
from jigsync.solvers.base import SolveRequest
from jigsync.solvers.cluster import Cluster
from jigsync.solvers.energy import score_pairs
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

LIKELY: Final = np.log(0.2)
"""Least log-probability of a link that joins."""
JOIN: Final = 3.0
"""Nats that all the sides that come to touch must be worth together."""
ROUNDS: Final = 2
"""Times that all links are tried: what collided with a lone fragment may fit a grown cluster."""


def parts_of(request: SolveRequest, scores: SideScores) -> list[Cluster]:
    """The clusters of the fragments that belong, the largest first."""
    members = request.belonging
    excluded = np.setdiff1d(np.arange(scores.n), members)
    problem = CompiledProblem(scores, Grid(1, scores.n), excluded=excluded.tolist(), upright=request.upright)
    side, link = problem.links()
    s = np.repeat(np.arange(len(side)), side.shape[1])
    t, value = side.ravel().astype(np.int64), link.ravel()
    keep = (t > s) & (value > LIKELY) & np.isin(s // 4, members) & np.isin(t // 4, members)
    s, t, value = s[keep], t[keep], value[keep]
    order = np.lexsort((t, s, -value))
    one = np.zeros(1, dtype=np.int64)
    clusters = {i: Cluster([i], np.zeros((1, 2), dtype=np.int64), one) for i in members.tolist()}
    for _ in range(ROUNDS):
        for k in order.tolist():
            ours, theirs, a, b = clusters[int(s[k]) // 4], clusters[int(t[k]) // 4], int(s[k]), int(t[k])
            if ours is theirs:
                continue
            if len(theirs.fragments) > len(ours.fragments):
                ours, theirs, a, b = theirs, ours, b, a
            cells, turns = ours.brought_along(a, theirs, b)
            if ours.collides(cells) or score_pairs(scores, *ours.seams(theirs, cells, turns)).sum() < JOIN:
                continue
            joined = ours.joined(theirs, cells, turns)
            for fragment in joined.fragments:
                clusters[fragment] = joined
    unique = {id(cluster): cluster for cluster in clusters.values()}
    return sorted(unique.values(), key=lambda cluster: (-len(cluster.fragments), min(cluster.fragments)))
