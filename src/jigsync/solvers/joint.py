"""`jigsync`, the default: joint MAP over slot and turns by the compiled decoder, for every grid that is possible.

    energy = - sum over touching sides of score[s, t]         (measure/sides.py; lower is better)

An unknown grid is decided by the energy: scores are log-ratios against "not neighbours", so a grid with more right
neighbours wins over one with fewer. Many factorizations are first tried with little effort and the promising ones
again with all of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jigsync.puzzle import Grid
from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.sync.engine import MapResult, solve_map

SCOUT_EFFORT: Final = 0.15
FINALISTS: Final = 2
"""Grids that are solved with full effort after scouting."""


class Joint:
    """The default solver."""

    name = "jigsync"
    summary = "joint MAP over slot and turns: growth, annealing and large-neighbourhood search, compiled"
    assumes = "nothing beyond direct-neighbour measurements; unknown turns, unknown grid, holes, extras, pins"

    def solve(self, request: SolveRequest) -> Assignment:
        """Places the fragments; the best energy over all grids."""
        budget = Budget(request)
        grids = request.grids()
        effort = 1.0
        if len(grids) > FINALISTS:
            scouted = [
                (self._run(request, grid, budget, SCOUT_EFFORT, k, len(grids)), grid) for k, grid in enumerate(grids)
            ]
            # Stable: equal energies keep the squarest first.
            scouted.sort(key=lambda found: -found[0].energy)
            grids = [grid for _, grid in scouted[:FINALISTS]]
            if budget.stopped:
                return self._answer(request, *scouted[0], budget)
        results = [(self._run(request, grid, budget, effort, k, len(grids)), grid) for k, grid in enumerate(grids)]
        best = max(range(len(results)), key=lambda k: (results[k][0].energy, -k))
        return self._answer(request, *results[best], budget)

    def _run(
        self, request: SolveRequest, grid: Grid, budget: Budget, effort: float, index: int, count: int
    ) -> MapResult:
        stage = f"{grid}" if effort >= 1.0 else f"{grid} (scouting)"
        excluded = {name: k for k, name in enumerate(request.ids)}
        left = budget.seconds_left
        return solve_map(
            request.measurements.sides(),
            grid,
            pins=request.pinned(grid),
            excluded=[excluded[name] for name in request.excluded],
            upright=request.upright,
            seed=request.seed,
            time_limit=None if left is None else max(1e-3, left / (count - index)),
            effort=effort,
            threads=request.threads,
            progress=lambda energy, share: budget.go_on(stage, (index + share) / count, -energy),
        )

    def _answer(self, request: SolveRequest, result: MapResult, grid: Grid, budget: Budget) -> Assignment:
        answer = Assignment.of(
            request,
            grid,
            result.slots.astype(np.int64),
            result.turns.astype(np.int64),
            -result.energy,
            note=budget.stopped or f"{result.starts} starts, {result.moves:,} moves",
        )
        return Assignment(
            answer.grid,
            answer.slots,
            answer.turns,
            answer.energy,
            result.marginals,
            answer.status,
            answer.reason,
            answer.note,
        )
