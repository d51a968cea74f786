"""Moves of a finished placement: what the placement contradicts is given a try, and kept when the whole gets better.

A *complaint* is a likely hypothesis (i, j) that the placement does not obey. To obey it, a part of the placement that
holds i or j comes off, is put where the hypothesis wants it, and what it would lie on comes off as single fragments;
growth then puts everything back. A part is the fragment alone, or the whole side of it once the weakest agreements
between i and j are cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jigsync.solvers.free import motion
from jigsync.solvers.free.growth import OVERLAP, SLACK, Growth, Scene, State, agreement, agreement_inside, best_per_pair
from jigsync.solvers.free.support import Support, energy, support
from jigsync.values.outlines import samples_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST: Final = 0.0
"""Log-odds with boost of a complaint."""
MOST_SHIFTED: Final = 0.5
"""Of the fragments: a larger part stays, and the other side moves."""
FORCED: Final = 50.0
"""Added to the log-odds of the hypothesis that is tried, so that growth begins with it."""
HOMELESS: Final = 0.3
"""Share of their agreements that fragments are thought to lose when others take their place."""
CUTS: Final = 12
"""Complaints, the likeliest ones, for which larger parts of one component may move."""
GAIN: Final = 0.5
"""Least gain of energy that is a gain."""


def improve(scene: Scene, state: State, threshold: float, tries: int, go_on: Callable[[], bool]) -> State:
    """Tries complaints, the likeliest first, until none helps or `tries` are made."""
    found = support(scene, state.pose, state.part)
    best = energy(found, state.part)
    failed: set[tuple[int, int]] = set()
    while tries > 0:
        better = False
        rows = _complaints(scene, state)
        alone = _worth_alone(scene, state, found, rows)
        for place, row in enumerate(rows.tolist()):
            for part in _parts(scene, state, found, row, alone[place], place < CUTS):
                key = row, int(part[0]) if len(part) == 1 else -len(part)
                if key in failed or tries <= 0 or not go_on():
                    continue
                failed.add(key)
                tried = _obeyed(scene, state, found, row, part, threshold)
                if tried is None:
                    continue
                tries -= 1
                now = support(scene, tried.pose, tried.part)
                value = energy(now, tried.part)
                if value < best - GAIN:
                    state, best, found, better = tried, value, now, True
                    break
            if better or tries <= 0:
                break
        if not better:
            break
    return state


def _complaints(scene: Scene, state: State) -> Ints:
    """Hypotheses (each once) that the placement does not obey, the likeliest first."""
    evidence = scene.evidence
    likely = (evidence.worth + evidence.boost)[: evidence.once]
    obeyed, _ = agreement_inside(evidence, state.pose, state.part)
    links = evidence.links
    key = np.minimum(links.i, links.j) * evidence.n + np.maximum(links.i, links.j)
    silent = np.isin(key[: evidence.once], key[obeyed])  # another hypothesis of the pair is obeyed
    both_pinned = scene.pinned[links.i] & scene.pinned[links.j]
    rows = np.flatnonzero((likely > LEAST) & ~silent & ~both_pinned[: evidence.once])
    return rows[np.lexsort((rows, -likely[rows]))]


def _worth_alone(scene: Scene, state: State, found: Support, rows: Ints) -> NDArray[np.bool_]:
    """Could it be better to move fragment i, or j, alone to where a hypothesis wants it? Shapes: (K,) -> (K, 2).

    What agrees with the new place, all others staying, against what agrees with the old one.
    """
    evidence, links = scene.evidence, scene.evidence.links
    n = len(state.part)
    held = np.bincount(found.i, weights=found.gain, minlength=n) + np.bincount(found.j, weights=found.gain, minlength=n)
    out = np.zeros((len(rows), 2), dtype=bool)
    for side, forced in ((0, (rows + evidence.once) % (2 * evidence.once)), (1, rows)):
        moved = links.j[forced]  # i stays
        count = np.diff(evidence.start)[moved]
        k = np.repeat(np.arange(len(rows)), count)
        other = evidence.order[samples_of(evidence.start, moved)]
        other = (other + evidence.once) % (2 * evidence.once)  # from the fragment that stays
        same = state.part[links.i[other]] == state.part[links.i[forced[k]]]
        k, other = k[same], other[same]
        gain, _ = agreement(evidence, state.pose, forced[k], other)
        pair = links.i[other]
        out[:, side] = best_per_pair(k, pair, gain, len(rows)) > held[moved]
    return out


def _parts(scene: Scene, state: State, found: Support, row: int, alone: NDArray[np.bool_], cut: bool) -> list[Ints]:
    """What may come off to obey a hypothesis, the smaller parts first."""
    i, j = int(scene.evidence.links.i[row]), int(scene.evidence.links.j[row])
    n, part = len(state.part), state.part
    options = [np.array([k]) for k, may in zip((i, j), alone, strict=True) if may]
    if part[i] != part[j]:
        options += [np.flatnonzero(part == part[k]) for k in (i, j)]
    elif cut:
        label = _cut(found, n, i, j)
        options += [np.flatnonzero(label == label[k]) for k in (i, j)]
    unique = {tuple(option.tolist()): option for option in options}
    allowed = [o for o in unique.values() if len(o) <= MOST_SHIFTED * n and not scene.pinned[o].any()]
    return sorted(allowed, key=len)


def _cut(found: Support, n: int, i: int, j: int) -> Ints:
    """(N,) the parts that are left when agreements are cut, the weakest first, until i and j lie apart."""
    low, high = 0, len(found.gain)
    order = np.argsort(found.gain, kind="stable")

    def parts(cut: int) -> Ints:
        kept = order[cut:]
        graph = coo_array((np.ones(len(kept)), (found.i[kept], found.j[kept])), shape=(n, n))
        return np.asarray(connected_components(graph, directed=False)[1])

    while low < high:  # the fewest cuts that part them
        middle = (low + high) // 2
        label = parts(middle)
        if label[i] == label[j]:
            low = middle + 1
        else:
            high = middle
    return parts(low)


def _obeyed(scene: Scene, state: State, found: Support, row: int, part: Ints, threshold: float) -> State | None:
    """The placement after a part has moved to where a hypothesis wants it; None when that cannot be better."""
    evidence, shapes = scene.evidence, scene.shapes
    i, j = int(evidence.links.i[row]), int(evidence.links.j[row])
    if i in part:
        row = (row + evidence.once) % (2 * evidence.once)
        i, j = j, i
    pose = state.pose
    moved = motion.compose(
        motion.compose(motion.compose(pose[i], evidence.links.i_from_j[row]), motion.inverse(pose[j])), pose[part]
    )
    there = pose.copy()
    there[part] = moved
    rest = np.setdiff1d(np.flatnonzero(state.part == state.part[i]), part)
    x, y = np.repeat(rest, len(part)), np.tile(part, len(rest))
    near = shapes.near(there, x, y, 0.0)
    x, y = x[near], y[near]
    hit = shapes.overlap(x, y, motion.between(there[x], there[y]), SLACK * shapes.size) > 2 * OVERLAP
    off = np.unique(x[hit])
    if i in off or scene.pinned[off].any() or len(off) > MOST_SHIFTED * len(rest):
        return None
    if _joint(support(scene, there, np.where(np.isin(np.arange(len(pose)), off), -1, 0)), part, rest) < (
        _joint(found, part, rest) + HOMELESS * _joint(found, off, np.setdiff1d(rest, off))
    ):
        return None
    label = state.part.copy()
    label[part] = -1 - part[0]
    label[off] = -1 - off
    start = State(pose.copy(), _connected(scene, state.pose, label))
    noise = np.zeros(evidence.once)
    noise[row % evidence.once] = FORCED
    growth = Growth(scene, start, threshold, noise)
    growth.run(lambda: True)
    return growth.state


def _joint(found: Support, one: Ints, other: Ints) -> float:
    """What two sets of fragments have in common."""
    cross = (np.isin(found.i, one) & np.isin(found.j, other)) | (np.isin(found.i, other) & np.isin(found.j, one))
    return float(found.gain[cross].sum())


def _connected(scene: Scene, pose: Floats, label: Ints) -> Ints:
    """(N,) what is left of each part may fall apart: parts joined by agreement, named by their first fragment."""
    rows, _ = agreement_inside(scene.evidence, pose, label - label.min())
    links, n = scene.evidence.links, len(label)
    pinned = np.flatnonzero(scene.pinned)
    i = np.concatenate([links.i[rows], pinned[:1].repeat(len(pinned))])
    j = np.concatenate([links.j[rows], pinned])
    _, found = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)
    _, first = np.unique(found, return_index=True)
    return np.asarray(first[found])
