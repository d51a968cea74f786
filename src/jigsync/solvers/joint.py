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
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.search import MapResult, solve_map
from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.solvers.confidence import confidences
from jigsync.solvers.evidence import Evidence
from jigsync.solvers.free.solver import Free as FreePoses
from jigsync.values.layout import Free, Grid

LADDER: Final = ((0.03, 4), (0.1, 1))
"""(effort, most grids kept afterwards) of each rung before the last, which has effort 1."""
LONG, FEW = 0.3, 9
"""Nats a fragment for a picture e times as long as wide, and the least number of fragments that is reckoned with. A
hundred eroded fragments have about the same energy in 5 rows as in 10 while the search is short."""
MARGIN: Final = 0.15
"""Of the grids of a rung, those go on whose energy is within this share of the best one's: little effort leaves a hard
puzzle's true grid behind a wrong one, but never by much."""


class _Found(NamedTuple):
    result: MapResult
    grid: Grid

    @property
    def worth(self) -> float:
        """Log-probability of the placement and its grid, up to a constant."""
        n, x = int((self.result.slots >= 0).sum()), abs(math.log(self.grid.rows / self.grid.cols))
        return self.result.energy - LONG * max(n, FEW) * (x * x if x < 1 else 2 * x - 1)


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
        best: _Found | None = None
        for effort, keep in rungs:
            if len(grids) == 1 and effort < 1:  # decided: nothing is left to compare
                done += effort / work
                continue
            found = []
            for k, grid in enumerate(grids):
                share = effort / work / len(grids)
                found.append(_Found(_run(request, evidence, grid, budget, effort, done, share, len(grids) - k), grid))
                done += share
            found.sort(key=lambda f: -f.worth)
            enough = found[0].worth - MARGIN * abs(found[0].worth)
            grids = [f.grid for f in found[:keep] if f.worth >= enough]
            if best is None or best.grid != found[0].grid or found[0].worth > best.worth:
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
        progress=lambda energy, part: budget.go_on(
            f"solving {grid}", done + share * part, -energy if math.isfinite(energy) else None
        ),
        better=lambda energy, slots, turns: _show(request, grid, budget, energy, slots, turns),
    )


def _show(
    request: SolveRequest, grid: Grid, budget: Budget, energy: float, slots: NDArray[np.int32], turns: NDArray[np.int32]
) -> None:
    """Lets the progress show a placement that is better than what was seen in any grid."""
    if request.progress is not None and (budget.best is None or -energy < (budget.best.energy or 0.0)):
        chosen = request.belonging
        budget.best = Assignment.of(
            request, grid, slots[chosen].astype(np.int64), turns[chosen].astype(np.int64), -energy
        )


def _answer(request: SolveRequest, evidence: Evidence, best: _Found, budget: Budget) -> Assignment:
    result, grid = best
    note = budget.stopped or f"{result.starts} starts, {result.moves:,} moves"
    slots, turns = (part[request.belonging].astype(np.int64) for part in (result.slots, result.turns))
    answer = Assignment.of(request, grid, slots, turns, -result.energy, note=note)
    sure = confidences(evidence.scores, grid, answer.slots, answer.turns, result.marginals, pinned=request.pinned(grid))
    return replace(answer, confidences=sure)
