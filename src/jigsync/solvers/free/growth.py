"""Growth: clusters of fragments merge, the best merge first, and every merge is fitted at once.

A hypothesis between two clusters says how all of one lies towards all of the other; others between the same two may say
the same. With l running over the pairs of fragments that agree (their best hypothesis each),

    score of a merge = sum_l (log_odds_l + BONUS - d_l^2 / 2)  -  BONUS  +  the best boost by loops

d_l^2 is the Mahalanobis distance of what the merge says of pair l and what l says. BONUS is what a second opinion is
worth: given that the two clusters lie like this, the pair is known to touch, so its prior odds are spent only once. A
merge is not made when fragments would lie inside each other, nor below a threshold: then two components remain.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.free import motion
from jigsync.solvers.free.evidence import Evidence
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links, mahalanobis, sandwich
from jigsync.solvers.free.polish import fit
from jigsync.solvers.free.shapes import Shapes
from jigsync.values import angles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BONUS: Final = 4.0
GATE: Final = 16.0
"""Largest d^2 at which two hypotheses agree."""
SLACK: Final = 0.04
"""How deep fragments may lie inside each other, in units of the median fragment's size."""
OVERLAP: Final = 0.02
"""Share of the smaller fragment's area that may lie deeper than that."""
CANDIDATES: Final = 24
"""Merges kept per pair of clusters."""
LOCAL: Final = 12
"""Clusters of up to this many fragments are fitted as a whole after a merge; of larger ones, what moved and what it
touches."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What growth works with.

    Attributes:
        shapes, evidence, joined: of the same N fragments.
        gap: px between outlines that touch.
        pinned: (N,) fragments whose pose is given.
    """

    shapes: Shapes
    evidence: Evidence
    joined: Joined
    gap: float
    pinned: Bools


@dataclass(eq=False)
class State:
    """Where fragments are. Shapes: pose (N, 3) in the frame of their cluster, part (N,) number of the cluster."""

    pose: Floats
    part: Ints

    @classmethod
    def apart(cls, n: int) -> State:
        """Every fragment by itself."""
        return cls(np.zeros((n, 3)), np.arange(n))

    def copy(self) -> State:
        """Another one with the same contents."""
        return State(self.pose.copy(), self.part.copy())


class _Merge(NamedTuple):
    """A candidate; the heap has the largest score first, then the lowest row, so that ties do not depend on luck."""

    order: float
    row: int
    a: int
    b: int
    ages: tuple[int, int]


class Growth:
    """Merges clusters of a state until no merge is worth it."""

    def __init__(self, scene: Scene, state: State, threshold: float, noise: Floats | None = None) -> None:
        self._scene, self.state, self._threshold = scene, state, threshold
        n = scene.evidence.n
        self._noise = np.zeros(2 * scene.evidence.once) if noise is None else np.tile(noise, 2)
        self._age = np.zeros(n, dtype=np.int64)
        self._heap: list[_Merge] = []
        self._pins = {int(part) for part in state.part[scene.pinned]}
        for part in np.unique(state.part):
            self._offer(int(part), later_only=True)

    def run(self, go_on: Callable[[], bool], largest: int | None = None, fit: bool = True) -> None:
        """Merges; clusters of more than `largest` fragments are not made."""
        while self._heap and go_on():
            merge = heapq.heappop(self._heap)
            if merge.ages != (self._age[merge.a], self._age[merge.b]):
                continue
            count = np.bincount(self.state.part, minlength=len(self._age))
            if largest is not None and count[merge.a] + count[merge.b] > largest:
                continue
            self._try(merge, fit)

    def _try(self, merge: _Merge, fit: bool) -> None:
        """Merges two clusters if nothing collides; what does not move is the one with pins, else the larger one."""
        state, evidence = self.state, self._scene.evidence
        row = merge.row
        i, j = int(evidence.links.i[row]), int(evidence.links.j[row])
        a, b = int(state.part[i]), int(state.part[j])
        count = np.bincount(state.part, minlength=len(self._age))
        if (b in self._pins, count[b], -b) > (a in self._pins, count[a], -a):
            row = (row + evidence.once) % (2 * evidence.once)
            i, j, a, b = j, i, b, a
        moved = np.flatnonzero(state.part == b)
        before = state.pose[moved].copy()
        a_from_b = motion.compose(
            motion.compose(state.pose[i], evidence.links.i_from_j[row]), motion.inverse(state.pose[j])
        )
        stays = np.flatnonzero(state.part == a)
        after = motion.compose(a_from_b, before)
        pose = state.pose.copy()
        pose[moved] = after
        if not self._clear(pose, stays, moved, 2.0):
            return
        if fit:
            pose = self._fitted(pose, stays, moved)
            if not self._clear(pose, stays, moved, 1.0):
                return
        state.pose = pose
        state.part[moved] = a
        self._age[[a, b]] += 1
        self._offer(a)

    def _clear(self, pose: Floats, stays: Ints, moved: Ints, ease: float) -> bool:
        """Do the two clusters lie beside each other, not inside?"""
        shapes = self._scene.shapes
        x, y = np.repeat(stays, len(moved)), np.tile(moved, len(stays))
        near = shapes.near(pose, x, y, 0.0)
        x, y = x[near], y[near]
        share = shapes.overlap(x, y, motion.between(pose[x], pose[y]), SLACK * shapes.size)
        return bool((share <= ease * OVERLAP).all())

    def _fitted(self, pose: Floats, stays: Ints, moved: Ints) -> Floats:
        """The poses after a short fit of what moved and what it touches."""
        scene, n = self._scene, len(pose)
        free = np.zeros(n, dtype=bool)
        free[moved] = True
        x, y = np.repeat(stays, len(moved)), np.tile(moved, len(stays))
        touching = np.unique(x[scene.shapes.near(pose, x, y, scene.gap)])
        if len(stays) + len(moved) <= LOCAL:
            free[stays] = True
        elif len(moved) > 1:
            free[touching] = True
        free &= ~scene.pinned
        if len(stays) + len(moved) <= LOCAL:
            around = stays
        elif free[touching].any():  # what moves is held by all its neighbours
            x, y = np.repeat(stays, len(touching)), np.tile(touching, len(stays))
            around = np.unique(x[scene.shapes.near(pose, x, y, scene.gap)])
        else:
            around = touching
        members = np.union1d(moved, around)
        pose = pose.copy()
        pose[members] = fit(scene.shapes, scene.joined, pose, members, free[members], scene.gap)
        return pose

    def _offer(self, part: int, later_only: bool = False) -> None:
        """Puts the merges of a cluster with all others on the heap; `later_only`: with those of higher numbers."""
        state, evidence = self.state, self._scene.evidence
        links = evidence.links
        members = np.flatnonzero(state.part == part)
        rows = np.concatenate([evidence.order[evidence.start[i] : evidence.start[i + 1]] for i in members])
        other = state.part[links.j[rows]]
        keep = (other > part) if later_only else (other != part)
        rows, other = rows[keep], other[keep]
        if not len(rows):
            return
        alone = evidence.worth[rows] + evidence.boost[rows] / 2 + self._noise[rows]
        order = np.lexsort((rows, -alone, other))
        rows, other = rows[order], other[order]
        first = np.searchsorted(other, other)
        place = np.arange(len(rows)) - first
        last = np.searchsorted(other, other, side="right")
        chosen = np.flatnonzero(place < CANDIDATES)
        count = (last - first)[chosen]
        k = np.repeat(chosen, count)
        at = np.arange(len(k)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first[chosen], count)
        gain, boost = agreement(evidence, state.pose, rows[k], rows[at], self._noise)
        pair = links.i[rows[at]] * evidence.n + links.j[rows[at]]
        score = best_per_pair(k, pair, gain, len(rows)) - BONUS
        best_boost = np.zeros(len(rows))
        np.maximum.at(best_boost, k, boost)
        total = score + best_boost
        for c in chosen:
            if total[c] > self._threshold:
                a, b = part, int(other[c])
                heapq.heappush(
                    self._heap, _Merge(-float(total[c]), int(rows[c]), a, b, (int(self._age[a]), int(self._age[b])))
                )


def agreement(
    evidence: Evidence, pose: Floats, h: Ints, other: Ints, noise: Floats | None = None
) -> tuple[Floats, Floats]:
    """What row `other` adds to a merge by row h, between the same two clusters, and its boost. Shapes: (K,), (K,)."""
    links = evidence.links
    i, j, x, y = links.i[h], links.j[h], links.i[other], links.j[other]
    i_from_y = motion.compose(links.i_from_j[h], motion.between(pose[j], pose[y]))
    x_from_i = motion.between(pose[x], pose[i])
    said = motion.compose(x_from_i, i_from_y)
    error = motion.difference(said, links.i_from_j[other])
    jacobian = np.tile(np.eye(3), (len(h), 1, 1))
    turn = angles.matrix(x_from_i[:, 2])
    jacobian[:, :2, :2] = turn
    lever = motion.swing(links.i_from_j[h, 2], motion.between(pose[j], pose[y])[:, :2])
    jacobian[:, :2, 2] = np.einsum("kab,kb->ka", turn, lever)
    spread = sandwich(jacobian, evidence.covariance[h]) + evidence.covariance[other]
    distance = np.where(h == other, 0.0, mahalanobis(error, spread))
    agrees = distance < GATE
    worth = evidence.worth[other] + BONUS + (0.0 if noise is None else noise[other])
    gain = np.where(agrees, np.maximum(0.0, worth - distance / 2), 0.0)
    gain = np.where(h == other, worth, gain)
    return gain, np.where(agrees, np.maximum(0.0, evidence.boost[other] - distance / 2), 0.0)


def best_per_pair(group: Ints, pair: Ints, gain: Floats, groups: int) -> Floats:
    """(groups,) the sum over pairs of the pair's largest gain."""
    order = np.lexsort((-gain, pair, group))
    group, pair, gain = group[order], pair[order], gain[order]
    first = np.ones(len(group), dtype=bool)
    first[1:] = (group[1:] != group[:-1]) | (pair[1:] != pair[:-1])
    return np.bincount(group[first], weights=gain[first], minlength=groups).astype(np.float64)


def agreeing(scene: Scene, pose: Floats, component: Ints) -> Links:
    """The hypotheses inside components that agree with the poses."""
    rows, _ = agreement_inside(scene.evidence, pose, component)
    return scene.evidence.links.keep(rows)


def agreement_inside(evidence: Evidence, pose: Floats, component: Ints) -> tuple[Ints, Floats]:
    """Rows (each hypothesis once) between fragments of one component that agree with the poses, and their d^2."""
    links = evidence.links.keep(slice(0, evidence.once))
    inside = np.flatnonzero((component[links.i] >= 0) & (component[links.i] == component[links.j]))
    i, j = links.i[inside], links.j[inside]
    error = motion.difference(motion.between(pose[i], pose[j]), links.i_from_j[inside])
    distance = mahalanobis(error, evidence.covariance[inside])
    agrees = distance < GATE
    return inside[agrees], distance[agrees]
