"""One picture in cells: the grid by evidence, and the placement in it.

    energy = - (joint log-probability of all pairs and single fragments, up to a constant)      lower is better

An unknown grid is decided by the energy: scores are log-ratios against "not neighbours", so a grid with more right
neighbours wins over one with fewer. Long grids are less likely beforehand, and so are missing fragments and strangers:

    log p(grid) = - max(N, FEW) h(log(rows / cols)) - HOLE holes - LEFT left over - THIN thin + const
    h(x) = LONG x^2, for |x| > 1 LONG (2 |x| - 1)

which hardly tells 3 : 2 from 4 : 3 and goes against strips. Few fragments say little about their grid. Many that are
hard to measure say little, too, but each adds its noise to the energy: a prior that does not grow with N puts a square
picture of a hundred eroded fragments into 2 rows. Where seams can be read, a wrong grid breaks so many of them that the
prior decides nothing.

Grids (`grids.grids_of`) climb a ladder: all of them with little effort, those that come near the best one with more,
and the best of these with all of it: more effort raises the energies of all grids by much the same. Strangers
(`strangers`) are taken off before placements are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.search import MapResult, solve_map
from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.solvers.cluster import Cluster
from jigsync.solvers.energy import energy_of
from jigsync.solvers.evidence import Evidence
from jigsync.solvers.strangers import without_strangers
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid

LADDER: Final = ((0.03, 4), (0.1, 1))
"""(effort, most grids kept afterwards) of each rung before the last, which has effort 1."""
LONG, FEW = 0.3, 9
"""Nats a fragment for a picture e times as long as wide, and the least number of fragments that is reckoned with. A
hundred eroded fragments have about the same energy in 5 rows as in 10 while the search is short."""
HOLE, LEFT, THIN = 4.0, 2.0, 8.0
"""Nats for every fragment that is missing, for every one that is left over, and for every outer row or column that is
at most half full: strangers find a link or two wherever there is room for them."""
MARGIN: Final = 0.15
"""Of the grids of a rung, those go on whose energy is within this share of the best one's: little effort leaves a hard
puzzle's true grid behind a wrong one, but never by much."""


class Found(NamedTuple):
    """A grid's best placement.

    Attributes:
        slots: of the fragments that stay, -1 for all others; (N,).
        gain: what it is worth that strangers are not in it, nats.
    """

    result: MapResult
    slots: NDArray[np.int64]
    gain: float

    @property
    def grid(self) -> Grid:
        """The grid that was tried."""
        return self.result.grid

    @property
    def placement(self) -> Arrangement:
        """All fragments, strangers unplaced."""
        return Arrangement(self.grid, self.slots, self.result.turns)

    @property
    def score(self) -> float:
        """Log-probability of the placement without strangers, up to a constant: higher is better."""
        return self.result.score + self.gain

    @property
    def worth(self) -> float:
        """The same of the placement and its grid."""
        n, x = int((self.result.slots >= 0).sum()), abs(math.log(self.grid.rows / self.grid.cols))
        return self.score - LONG * max(n, FEW) * (x * x if x < 1 else 2 * x - 1)

    def less(self, n: int) -> float:
        """What holes and fragments left over, of n, make the placement less likely beforehand, nats."""
        filled = np.isin(np.arange(self.grid.size), self.slots).reshape(self.grid.shape)
        outer = (filled[0], filled[-1], filled[:, 0], filled[:, -1])
        thin = sum(float(line.mean()) <= 0.5 for line in outer)
        placed = int(filled.sum())
        return HOLE * (self.grid.size - placed) + LEFT * (n - placed) + THIN * thin


def climb(
    request: SolveRequest,
    evidence: Evidence,
    grids: list[Grid],
    core: Cluster | None,
    budget: Budget,
    rungs: Sequence[tuple[float, int]] = (*LADDER, (1.0, 1)),
) -> Found:
    """The best placement over some grids.

    Args:
        core: the largest cluster, which tells whether strangers can be told; None where nothing is known.
        rungs: (effort, most grids kept afterwards).
    """
    n = len(request.belonging)
    if len(grids) == 1:
        rungs = [rungs[-1]]
    work = sum(effort for effort, _ in rungs)
    done = 0.0
    best: Found | None = None
    for effort, keep in rungs:
        if len(grids) == 1 and effort < rungs[-1][0]:  # decided: nothing is left to compare
            done += effort / work
            continue
        found = []
        for k, grid in enumerate(grids):
            share = effort / work / len(grids)
            result = _run(request, evidence, grid, budget, effort, done, share, len(grids) - k)
            found.append(_told(request, evidence, result, core))
            done += share
        worth = {f.grid: f.worth - f.less(n) for f in found}
        found.sort(key=lambda f: -worth[f.grid])
        first = worth[found[0].grid]
        grids = [f.grid for f in found[:keep] if worth[f.grid] >= first - MARGIN * abs(first)]
        if best is None or best.grid != found[0].grid or first > best.worth - best.less(n):
            best = found[0]
        if budget.stopped:
            break
    assert best is not None
    return best


def _told(request: SolveRequest, evidence: Evidence, result: MapResult, core: Cluster | None) -> Found:
    """The placement without strangers; whoever pins fragments in a grid that all of them fill wants all in it."""
    n = len(request.belonging)
    if core is None or (request.pins and n == result.grid.size):
        return Found(result, result.slots, 0.0)
    kept = np.zeros(result.n, dtype=bool)
    kept[list(request.pinned(result.grid))] = True
    return Found(result, *without_strangers(evidence.scores, result, kept, n))


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
