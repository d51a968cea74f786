"""Gallagher 2012: a constrained spanning tree over sides, trimmed to the frame, its holes filled.

Kruskal's algorithm on sides: the most certain pair first; it joins two clusters rigidly, turning one of them, unless
two fragments would share a cell. The grid plays no part in that. Then the rows x cols window that holds the most
fragments of the largest cluster is kept (*trim*), and what is left goes into the free slots, the slot with the most
filled neighbours first (*fill*).

Certainty. Gallagher divides a dissimilarity by the second best one of the side; side scores are logarithms, so the
ratio becomes a difference:

    margin(s, t) = score[s, t] - max(best other score of s, best other score of t)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jigsync.solvers.base import Assignment, Budget, Pins, SolveRequest, over_grids
from jigsync.solvers.cluster import Cluster
from jigsync.solvers.energy import Ints
from jigsync.solvers.growth import Growth, Kernel
from jigsync.solvers.table import SideTable
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid

PARTNERS_PER_SIDE = 64
"""How many partners of a side can become edges of the tree; the true one is rarely beyond the first few."""


@dataclass(frozen=True)
class Tree:
    """The spanning-tree assembly."""

    name: ClassVar[str] = "tree"
    summary: ClassVar[str] = "Constrained spanning tree, trim and fill (Gallagher 2012)."
    assumes: ClassVar[str] = (
        "Nothing about turns: the clusters turn as they join. The strongest pairs must be right, an early wrong join"
        " is never undone. Takes pins, holes, surplus fragments and unknown grids."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """One tree for all grids (one per grid when pins tie it to a frame), then trim and fill for each."""
        table, budget = SideTable.of(request), Budget(request)
        edges = certain_edges(table)
        whole = None if request.pins else _largest(join(table, edges, budget))

        def attempt(grid: Grid, pins: Pins, to_beat: float) -> Arrangement:
            if whole is None:
                kernel = join(table, edges, budget, grid, pins)[next(iter(pins))].kernel()
            else:
                kernel = trim(whole, grid, may_turn=not request.gauge_fixed)
            growth = Growth(table, grid, kernel, floating=False, prefer_buddies=False)
            growth.grow(budget, "fill")
            return growth.arrangement()

        return over_grids(request, budget, table.scores, attempt)


def certain_edges(table: SideTable) -> tuple[Ints, Ints]:
    """Pairs of sides in falling margin, ties by their numbers.

    Shapes: two (M,).
    """
    s, t, value = table.edges(PARTNERS_PER_SIDE)
    partner, first, second = table.best
    other_s = np.where(partner[s] == t, second[s], first[s])
    other_t = np.where(partner[t] == s, second[t], first[t])
    order = np.argsort(-(value - np.maximum(other_s, other_t)), kind="stable")
    return s[order], t[order]


def join(
    table: SideTable, edges: tuple[Ints, Ints], budget: Budget, grid: Grid | None = None, pins: Pins | None = None
) -> list[Cluster]:
    """The cluster of every fragment after Kruskal's algorithm with the collision constraint.

    Pinned fragments start as one cluster in the grid's frame, which keeps its turn and never leaves the grid.
    """
    clusters = [Cluster([i], np.zeros((1, 2), dtype=np.int64), np.zeros(1, dtype=np.int64)) for i in range(table.n)]
    framed: Cluster | None = None
    if grid is not None and pins:
        cells = np.array([grid.cell(slot) for slot, _ in pins.values()])
        framed = Cluster(list(pins), cells, np.array([turns for _, turns in pins.values()]))
        for i in pins:
            clusters[i] = framed
    left = len({id(cluster) for cluster in clusters})
    for done, (s, t) in enumerate(zip(edges[0].tolist(), edges[1].tolist(), strict=True)):
        if left == 1 or (done % 256 == 0 and not budget.go_on("tree", 1 - left / table.n)):
            break
        ours, theirs = clusters[s // 4], clusters[t // 4]
        if ours is theirs:
            continue
        if theirs is framed or (ours is not framed and len(theirs.fragments) > len(ours.fragments)):
            ours, theirs, s, t = theirs, ours, t, s
        cells, turns = ours.brought_along(s, theirs, t)
        if ours.collides(cells):
            continue
        if ours is framed and grid is not None and not all(grid.contains(*cell) for cell in cells.tolist()):
            continue
        joined = ours.joined(theirs, cells, turns)
        for fragment in joined.fragments:
            clusters[fragment] = joined
        framed = joined if ours is framed else framed
        left -= 1
    return clusters


def trim(cluster: Kernel, grid: Grid, *, may_turn: bool) -> Kernel:
    """The fragments inside the rows x cols window that holds the most of them, in the window's cells.

    A free gauge may turn the cluster: for rows != cols the window is tried both ways.
    """
    best: tuple[int, Kernel] | None = None
    for turn in (0, 1) if may_turn and grid.rows != grid.cols else (0,):
        cells = z4.act(turn, cluster.cells[:, ::-1])[:, ::-1]
        cells = cells - cells.min(axis=0)
        # counts[r, c] = fragments in the window whose last cell is (r, c): a box sum by two cumulative sums.
        covered = np.zeros(cells.max(axis=0) + 1 + np.array(grid.shape), dtype=np.int64)
        covered[tuple((cells + grid.shape).T)] = 1
        sums = covered.cumsum(axis=0).cumsum(axis=1)
        counts = (
            sums[grid.rows :, grid.cols :]
            - sums[: -grid.rows, grid.cols :]
            - sums[grid.rows :, : -grid.cols]
            + sums[: -grid.rows, : -grid.cols]
        )
        row, col = np.unravel_index(int(np.argmax(counts)), counts.shape)
        if best is None or counts[row, col] > best[0]:
            moved = cells - (np.array([row, col]) - np.array(grid.shape) + 1)
            inside = np.all((moved >= 0) & (moved < grid.shape), axis=1)
            kept = Kernel(cluster.fragments[inside], moved[inside], (cluster.turns[inside] + turn) % 4)
            best = int(counts[row, col]), kept
    assert best is not None
    return best[1]


def _largest(clusters: list[Cluster]) -> Kernel:
    """The cluster with the most fragments; of equal ones, that of the first fragment."""
    return max(clusters, key=lambda cluster: len(cluster.fragments)).kernel()
