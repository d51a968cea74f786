"""`jigsync`, the default: joint MAP over slot and turns by the compiled decoder, for every picture that is in the pile.

What hangs together (`parts`) tells before any search whether the pile holds one picture or more, and about which grids
they have. Every picture is decoded on its own (`ladder`): those of a pile that holds several are believed when they
explain what was measured better than one picture does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.solvers.cluster import Cluster
from jigsync.solvers.confidence import confidences
from jigsync.solvers.energy import energy_of
from jigsync.solvers.evidence import Evidence
from jigsync.solvers.free.solver import Free as FreePoses
from jigsync.solvers.grids import grids_of
from jigsync.solvers.ladder import LADDER, LEFT, Found, climb
from jigsync.solvers.parts import parts_of
from jigsync.solvers.pictures import LONERS, about_the_rest, peeled, without
from jigsync.values.layout import Free

MOST: Final = 1000
"""Fragments of a pile that is asked what hangs together; of larger ones it takes too long."""
ANOTHER: Final = 2.0
"""Nats that a further picture is less likely beforehand."""

_Picture = tuple[SolveRequest, Found]
"""What was asked about a picture, and what was found."""


class Joint:
    """The default solver."""

    name = "jigsync"
    summary = "joint MAP over slot and turns: growth, annealing and large-neighbourhood search, compiled"
    assumes = "nothing: unknown turns, unknown grid, holes, strangers, several pictures, pins, any measurer"

    def solve(self, request: SolveRequest) -> Assignment:
        """Places the fragments; the best energy over all grids, or free poses where the layout is free."""
        if isinstance(request.layout, Free):
            return FreePoses().solve(request)
        budget = Budget(request)
        evidence = Evidence.of(request.measurements)
        answers = [_answer(part, evidence, found, budget) for part, found in _pile(request, evidence, budget)]
        return replace(answers[0], more=tuple(answers[1:]))


def _pile(request: SolveRequest, evidence: Evidence, budget: Budget) -> list[_Picture]:
    """The pictures of a pile, each decoded on its own."""
    readable = evidence.scores.dense is not None and evidence.scores.n <= MOST
    clusters = parts_of(request, evidence.scores) if readable else []
    core = clusters[0] if clusters else None
    grids = grids_of(request, core, evidence.sees_the_gauge)
    first = peeled(request, clusters) if clusters else None
    if first is not None:
        several = _several(request, evidence, first, clusters, budget)
        whole = climb(request, evidence, grids, core, budget, LADDER[:1])
        n = len(request.belonging)
        if len(several) > 1 and _worth(several, n) > _worth([(request, whole)], n):
            return several
    return [(request, climb(request, evidence, grids, core, budget))]


def _several(
    request: SolveRequest, evidence: Evidence, first: Cluster, clusters: list[Cluster], budget: Budget
) -> list[_Picture]:
    """One picture is decoded, and then what it leaves over."""
    later = {i for other in clusters if other is not first and len(other.fragments) > LONERS for i in other.fragments}
    part = without(request, later)
    found = climb(part, evidence, grids_of(part, first, evidence.sees_the_gauge), first, budget)
    rest = about_the_rest(request, np.flatnonzero(found.slots >= 0).tolist())
    return [(part, found), *(_pile(rest, evidence, budget) if len(rest.belonging) > 1 else [])]


def _worth(pictures: list[_Picture], n: int) -> float:
    """Log-probability of the pictures of a pile of n fragments, up to a constant."""
    placed = [int((found.slots >= 0).sum()) for _, found in pictures]
    worth = sum(found.worth - found.less(count) for (_, found), count in zip(pictures, placed, strict=True))
    return worth - LEFT * (n - sum(placed)) - ANOTHER * (len(pictures) - 1)


def _answer(request: SolveRequest, evidence: Evidence, best: Found, budget: Budget) -> Assignment:
    result = best.result
    note = budget.stopped or f"{result.starts} starts, {result.moves:,} moves"
    answer = Assignment.of(request, best.placement.select(request.belonging), energy_of(best.score), note=note)
    sure = confidences(evidence.scores, answer, result.marginals, pinned=request.pinned(best.grid))
    return replace(answer, confidences=sure, stopped=bool(budget.stopped))
