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
from jigsync.solvers.evidence import Evidence
from jigsync.solvers.free.solver import Free as FreePoses
from jigsync.solvers.grids import grids_of
from jigsync.solvers.ladder import LADDER, LEFT, Found, climb
from jigsync.solvers.parts import parts_of
from jigsync.solvers.pictures import pictures_of, request_of
from jigsync.values.layout import Free

MOST: Final = 1000
"""Fragments of a pile that is asked what hangs together; of larger ones it takes too long."""
ANOTHER: Final = 10.0
"""Nats that a further picture is less likely beforehand."""


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
        dense = evidence.scores.dense is not None and evidence.scores.n <= MOST
        clusters = parts_of(request, evidence.scores) if dense else []
        core = clusters[0] if clusters else None
        grids = grids_of(request, core, evidence.sees_the_gauge)
        pictures = pictures_of(request, clusters)
        if len(pictures) > 1:
            several = _several(request, evidence, pictures, budget)
            whole = climb(request, evidence, grids, core, budget, LADDER[:1])
            n = len(request.belonging)
            apart = sum(found.worth - found.less(int((found.slots >= 0).sum())) for _, found in several)
            left = n - sum(int((found.slots >= 0).sum()) for _, found in several)
            if apart - LEFT * left - ANOTHER * (len(several) - 1) > whole.worth - whole.less(n):
                first, *others = (_answer(part, evidence, found, budget) for part, found in several)
                return replace(first, more=tuple(others))
        return _answer(request, evidence, climb(request, evidence, grids, core, budget), budget)


def _several(
    request: SolveRequest, evidence: Evidence, pictures: list[Cluster], budget: Budget
) -> list[tuple[SolveRequest, Found]]:
    """Every picture decoded on its own, of what hangs together and what no picture before it has taken."""
    taken: set[int] = set()
    out = []
    for k, core in enumerate(pictures):
        later = {i for other in pictures[k + 1 :] for i in other.fragments}
        part = request_of(request, taken | later, first=k == 0)
        found = climb(part, evidence, grids_of(part, core, evidence.sees_the_gauge), core, budget)
        taken |= set(np.flatnonzero(found.slots >= 0).tolist())
        out.append((part, found))
    return out


def _answer(request: SolveRequest, evidence: Evidence, best: Found, budget: Budget) -> Assignment:
    result, grid = best.result, best.grid
    note = budget.stopped or f"{result.starts} starts, {result.moves:,} moves"
    chosen = request.belonging
    slots, turns = best.slots[chosen], result.turns[chosen].astype(np.int64)
    answer = Assignment.of(request, grid, slots, turns, -best.energy, note=note)
    sure = confidences(evidence.scores, grid, answer.slots, answer.turns, result.marginals, pinned=request.pinned(grid))
    return replace(answer, confidences=sure)
