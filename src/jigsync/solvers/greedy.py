"""Pomeranz, Shemesh and Ben-Shahar 2011: placer, segmenter, shifter, by best buddies.

Two sides are *best buddies* when each is the other's best partner. The answer's quality is estimated without any
truth by the fraction of its touching sides that are best buddies, and three modules raise it in turns:

    placer     grows a kernel until all fragments are placed (`growth`)
    segmenter  splits the placement into regions joined by best buddies
    shifter    makes the largest region the next kernel; as the kernel floats, it may land elsewhere in the grid

until the estimate stops growing. The first kernel is the fragment amid the most best buddies, its own and theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jigsync.solvers.base import Assignment, Budget, Pins, SolveRequest, over_grids
from jigsync.solvers.energy import placement_score, touching_sides
from jigsync.solvers.growth import Growth, Kernel
from jigsync.solvers.table import SideTable
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid

MOST_ROUNDS = 30
"""Rounds after which it stops even though the estimate still grows; ten or so are usual."""


@dataclass(frozen=True)
class Greedy:
    """The best-buddies placer."""

    name: ClassVar[str] = "greedy"
    summary: ClassVar[str] = "Best-buddies placer, segmenter and shifter (Pomeranz 2011)."
    assumes: ClassVar[str] = (
        "Best buddies are mostly true neighbours. Published for known turns; unknown turns are searched by trying"
        " every fragment in all four. Takes pins, holes, surplus fragments and unknown grids."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """Placer, segmenter, shifter for each grid."""
        table, budget = SideTable.of(request), Budget(request)

        def attempt(grid: Grid, pins: Pins, to_beat: float) -> Arrangement:
            # While the gauge is free, the first fragment may stand upright or lie on its side in an oblong grid.
            starts = (0, 1) if not request.gauge_fixed and grid.rows != grid.cols else (0,)
            kernels = [_pinned(grid, pins)] if pins else [first_kernel(table, turns) for turns in starts]
            return max((improve(table, grid, kernel, pins, budget) for kernel in kernels), key=lambda pair: pair[0])[1]

        return over_grids(request, budget, table.scores, attempt)


def improve(
    table: SideTable, grid: Grid, kernel: Kernel, pins: Pins, budget: Budget
) -> tuple[tuple[float, float], Arrangement]:
    """The rounds of one kernel: the best (estimate, score) and its placement."""
    best: tuple[tuple[float, float], Arrangement] | None = None
    for _ in range(MOST_ROUNDS):
        growth = Growth(table, grid, kernel, floating=not pins)
        finished = growth.grow(budget, "place")
        found = growth.arrangement()
        quality = buddies_fraction(table, found), placement_score(table.scores, found)
        if best is not None and quality <= best[0]:
            break
        best = quality, found
        kernel = largest_segment(table, found, pins)
        if not finished or len(kernel.fragments) == growth.placed:
            break
    assert best is not None
    return best


def first_kernel(table: SideTable, turns: int) -> Kernel:
    """The fragment with the most best buddies; of equal ones, that whose buddies have the most themselves.

    Further ties go to the largest sum of its buddies' scores, then to the first.
    """
    buddies = table.buddies.reshape(-1, 4)
    counts = (buddies >= 0).sum(axis=1)
    theirs = np.where(buddies >= 0, counts[buddies // 4], 0).sum(axis=1)
    scores = np.where(buddies >= 0, table.best[1].reshape(-1, 4), 0.0).sum(axis=1)
    first = np.lexsort((np.arange(table.n), -scores, -theirs, -counts))[:1]
    return Kernel(first, np.zeros((1, 2), np.int64), np.full(1, turns))


def buddies_fraction(table: SideTable, found: Arrangement) -> float:
    """The best-buddies metric: the fraction of touching sides that are best buddies."""
    s, t = touching_sides(found)
    return float(np.mean(table.buddies[s] == t)) if len(s) else 0.0


def largest_segment(table: SideTable, found: Arrangement, pins: Pins) -> Kernel:
    """The largest region joined by best buddies; with pins, the pinned fragments and all regions around them."""
    s, t = touching_sides(found)
    buddies = table.buddies[s] == t
    i, j = s[buddies] // 4, t[buddies] // 4
    graph = coo_array((np.ones(len(i)), (i, j)), shape=(table.n, table.n))
    _, region = connected_components(graph, directed=False)
    if pins:
        kept = np.isin(region, region[list(pins)]) & (found.slots >= 0)
    else:
        kept = (region == np.bincount(region[found.slots >= 0]).argmax()) & (found.slots >= 0)
    fragments = np.flatnonzero(kept)
    return Kernel(fragments, found.cells[fragments], found.turns[fragments])


def _pinned(grid: Grid, pins: Pins) -> Kernel:
    cells = np.array([grid.cell(slot) for slot, _ in pins.values()], dtype=np.int64)
    return Kernel(np.array(list(pins), dtype=np.int64), cells, np.array([turns for _, turns in pins.values()]))
