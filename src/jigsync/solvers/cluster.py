"""Clusters: fragments that are joined rigidly, in cells of their own frame."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.energy import Ints
from jigsync.solvers.growth import Kernel
from jigsync.values import z4


@dataclass(eq=False)
class Cluster:
    """Fragments joined rigidly, with the cells they cover in the cluster's own frame."""

    fragments: list[int]
    cells: Ints  # (M, 2), parallel to fragments
    turns: Ints  # (M,)
    index: dict[int, int] = field(init=False)
    low: Ints = field(init=False)
    covered: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.index = {fragment: at for at, fragment in enumerate(self.fragments)}
        self.low = self.cells.min(axis=0)
        self.covered = np.zeros(self.cells.max(axis=0) - self.low + 1, dtype=bool)
        self.covered[tuple((self.cells - self.low).T)] = True

    def kernel(self) -> Kernel:
        return Kernel(np.array(self.fragments, dtype=np.int64), self.cells, self.turns)

    def brought_along(self, s: int, other: Cluster, t: int) -> tuple[Ints, Ints]:
        """(cells, turns) of another cluster in this one's frame when its side t touches our side s."""
        mine, theirs = self.index[s // 4], other.index[t // 4]
        bearing = z4.turn_bearing(s % 4, int(self.turns[mine]))
        turn = (bearing + 2 - t - int(other.turns[theirs])) % 4
        cells = z4.act(turn, other.cells[:, ::-1])[:, ::-1]
        target = self.cells[mine] + z4.bearing_offset(bearing)
        return cells + (target - cells[theirs]), (other.turns + turn) % 4

    def collides(self, cells: Ints) -> bool:
        """Does any of these cells lie on a covered one?"""
        at = cells - self.low
        inside = np.all((at >= 0) & (at < self.covered.shape), axis=1)
        return bool(self.covered[tuple(at[inside].T)].any())

    def joined(self, other: Cluster, cells: Ints, turns: Ints) -> Cluster:
        """Both as one, the other where `brought_along` puts it."""
        return Cluster(
            self.fragments + other.fragments, np.concatenate([self.cells, cells]), np.concatenate([self.turns, turns])
        )

    def seams(self, other: Cluster, cells: Ints, turns: Ints) -> tuple[Ints, Ints]:
        """The sides that touch when another cluster lies there, ours first. Shapes: two (M,)."""
        size = self.covered.shape
        there = np.full((size[0] + 2, size[1] + 2), -1, dtype=np.int64)
        there[tuple((self.cells - self.low + 1).T)] = np.arange(len(self.fragments))
        ours, theirs = [], []
        fragments = np.array(other.fragments, dtype=np.int64)
        mine = np.array(self.fragments, dtype=np.int64)
        for bearing in range(z4.ORDER):
            at = cells - self.low + 1 + z4.bearing_offset(bearing)
            inside = np.flatnonzero(np.all((at >= 0) & (at < there.shape), axis=1))
            k = there[tuple(at[inside].T)]
            inside, k = inside[k >= 0], k[k >= 0]
            theirs.append(4 * fragments[inside] + (bearing - turns[inside]) % 4)
            ours.append(4 * mine[k] + (bearing + 2 - self.turns[k]) % 4)
        return np.concatenate(ours), np.concatenate(theirs)
