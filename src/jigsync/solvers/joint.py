"""`jigsync`, the default: joint MAP over slot and turns by the compiled decoder, for every grid that is possible.

    energy = - (joint log-probability of all pairs and single fragments, up to a constant)      lower is better

An unknown grid is decided by the energy: scores are log-ratios against "not neighbours", so a grid with more right
neighbours wins over one with fewer. Long grids are less likely beforehand:

    log p(grid) = - max(N, FEW) h(log(rows / cols)) + const,    h(x) = LONG x^2, for |x| > 1 LONG (2 |x| - 1)

which hardly tells 3 : 2 from 4 : 3 and goes against strips. Few fragments say little about their grid. Many that are
hard to measure say little, too, but each adds its noise to the energy: a prior that does not grow with N puts a square
picture of a hundred eroded fragments into 2 rows. Where seams can be read, a wrong grid breaks so many of them that the
prior decides nothing.

Factorizations that are not too long (`base.grids_to_try`) climb a ladder: all of them with little effort, those that
come near the best one with more, and the best of these with all of it: more effort raises the energies of all grids by
much the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from jigsync.engine.search import MapResult, solve_map
from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.solvers.confidence import confidences
from jigsync.solvers.energy import energy_of
from jigsync.solvers.evidence import Evidence
from jigsync.solvers.free.solver import Free as FreePoses
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Free, Grid

LADDER: Final = ((0.03, 4), (0.1, 1))
"""(effort, most grids kept afterwards) of each rung before the last, which has effort 1."""
LONG, FEW = 0.3, 9
"""Nats a fragment for a picture e times as long as wide, and the least number of fragments that is reckoned with. A
hundred eroded fragments have about the same energy in 5 rows as in 10 while the search is short."""
MARGIN: Final = 0.15
"""Of the grids of a rung, those go on whose energy is within this share of the best one's: little effort leaves a hard
puzzle's true grid behind a wrong one, but never by much."""


class Joint:
    """The default solver."""

    name = "jigsync"
    summary = "joint MAP over slot and turns: growth, annealing and large-neighbourhood search, compiled"
    assumes = "nothing: unknown turns, unknown grid, holes, extra fragments, pins, any measurer"

    def solve(self, request: SolveRequest) -> Assignment:
        """Places the fragments; the best energy over all grids, or free poses where the layout is free."""
        if isinstance(request.layout, Free):
            return FreePoses().solve(request)
        budget = Budget(request)
        evidence = Evidence.of(request.measurements)
        grids = request.grids(both_ways=evidence.sees_the_gauge)
        rungs = [*LADDER, (1.0, 1)] if len(grids) > 1 else [(1.0, 1)]
        work = sum(effort for effort, _ in rungs)
        done = 0.0
        best: MapResult | None = None
        for effort, keep in rungs:
            if len(grids) == 1 and effort < 1:  # decided: nothing is left to compare
                done += effort / work
                continue
            found = []
            for k, grid in enumerate(grids):
                share = effort / work / len(grids)
                found.append(_run(request, evidence, grid, budget, effort, done, share, len(grids) - k))
                done += share
            found.sort(key=worth, reverse=True)
            enough = worth(found[0]) - MARGIN * abs(worth(found[0]))
            grids = [f.grid for f in found[:keep] if worth(f) >= enough]
            if best is None or best.grid != found[0].grid or worth(found[0]) > worth(best):
                best = found[0]
            if budget.stopped:
                break
        assert best is not None
        return _answer(request, evidence, best, budget)


def _run(
    request: SolveRequest,
    evidence: Evidence,
    grid: Grid,
    budget: Budget,
    effort: float,
    done: float,
    share: float,
    left: int,
) -> MapResult:
    """One grid; `done` and `share` place it on the progress bar, `left` grids share the time that is left."""
    index = {name: k for k, name in enumerate(request.ids)}
    seconds = budget.seconds_left
    return solve_map(
        evidence.scores,
        grid,
        unary_turns=evidence.unary_turns,
        unary_cells=evidence.cells(grid),
        unary_poses=evidence.poses(grid),
        full=evidence.full(grid),
        pins=request.pinned(grid),
        excluded=[index[name] for name in request.excluded],
        upright=request.upright,
        seed=request.seed,
        time_limit=None if seconds is None else max(1e-3, seconds / left),
        effort=effort,
        threads=request.threads,
        progress=lambda score, part: budget.go_on(
            f"solving {grid}", done + share * part, energy_of(score) if math.isfinite(score) else None
        ),
        better=lambda score, found: _show(request, budget, energy_of(score), found),
    )


def _show(request: SolveRequest, budget: Budget, energy: float, found: Arrangement) -> None:
    """Lets the progress show a placement that is better than what was seen in any grid."""
    if request.progress is not None and (budget.best is None or energy < (budget.best.energy or 0.0)):
        budget.best = Assignment.of(request, found.select(request.belonging), energy)


def worth(result: MapResult) -> float:
    """Log-probability of a placement and its grid, up to a constant."""
    n, x = int((result.slots >= 0).sum()), abs(math.log(result.grid.rows / result.grid.cols))
    return result.score - LONG * max(n, FEW) * (x * x if x < 1 else 2 * x - 1)


def _answer(request: SolveRequest, evidence: Evidence, result: MapResult, budget: Budget) -> Assignment:
    note = budget.stopped or f"{result.starts} starts, {result.moves:,} moves"
    answer = Assignment.of(request, result.select(request.belonging), energy_of(result.score), note=note)
    sure = confidences(evidence.scores, answer, result.marginals, pinned=request.pinned(result.grid))
    return replace(answer, confidences=sure)
