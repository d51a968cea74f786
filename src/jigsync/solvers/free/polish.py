"""Joint polish: Gauss-Newton over the poses of many fragments and one gap that all their contacts share.

    r_c = (P - Q) . N - g        at every contact: P a sample of a, Q, N the nearest outline point of b and its normal
    r_m = (P - Q) . T            at every match that lies together: along the seam, weakly
    r_h = i_from_j - measured    of every hypothesis that is believed, weakly

Contacts are found anew each round, and their robust scale shrinks from round to round, so that drift of several pixels
is pulled together before the fit becomes sharp. What erosion took off is not known beforehand: g is found with the
poses, from what loops of fragments leave over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jigsync.engine import outlines as engine
from jigsync.engine.outlines import Pairs
from jigsync.solvers.free import motion
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.shapes import Shapes
from jigsync.values import angles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

WIDEST, SHARPEST = 0.05, 0.008
"""Robust scale of a contact in the first and in the last round, in units of the median fragment's size."""
ROUNDS: Final = 12
QUICK: Final = 0.03, 0.012
"""The same of a short fit."""
QUICK_ROUNDS: Final = 5
NOISE, WEAR = 0.5, 0.13
"""Standard deviation of a contact about the gap, px, and per px of the gap: what was worn off varies."""
APART: Final = 4.0
"""Samples along an outline whose errors are one error: contacts count a quarter each."""
ALONG: Final = 2.0
"""Standard deviation of a match along its seam, in steps of the outline."""
HOLD: Final = 1e-3
"""Of a hypothesis' information: it holds what no contact holds, and bends to what contacts say."""
OVERLAP: Final = 0.02
"""Of the size: how deep outlines of touching fragments may lie in each other: masks take some of the rim in."""
FACING: Final = 0.3
"""Least agreement of two normals for a contact."""


@dataclass(frozen=True, eq=False)
class Polished:
    """Poses after the fit.

    Attributes:
        pose: (N, 3) canvas_from_frag.
        gap: px between the outlines of fragments that touch.
        scatter: px, robust standard deviation of the contacts about the gap.
        information: (N, 3, 3) of each pose given all others, in the canvas; 0 for fragments that did not move.
    """

    pose: Floats
    gap: float
    scatter: float
    information: Floats


@dataclass(eq=False)
class _System:
    """Normal equations over the poses of V variable fragments, those of all fixed ones together, and the gap.

    Shapes: place (N,) the number of a variable fragment, V for a fixed one; matrix (3 V + 4,) square, right (3 V + 4,).
    """

    place: Ints
    matrix: Floats
    right: Floats

    @classmethod
    def empty(cls, variable: Bools) -> _System:
        count = int(variable.sum())
        place = np.where(variable, np.cumsum(variable) - 1, count)
        return cls(place, np.zeros((3 * count + 4, 3 * count + 4)), np.zeros(3 * count + 4))

    def add(self, a: Ints, b: Ints, blocks: Floats) -> None:
        """Adds the blocks of pairs. Shapes: (K,), (K,), (K, 8, 8), upper triangles (`engine.outlines`)."""
        last = np.full(len(a), len(self.right) - 1)
        a, b = 3 * self.place[a], 3 * self.place[b]
        at = np.stack([a, a + 1, a + 2, b, b + 1, b + 2, last], axis=1)
        upper = np.triu(np.ones((7, 7)))
        whole = blocks[:, :7, :7] * upper
        whole += whole.transpose(0, 2, 1) * (1 - np.eye(7))
        size = len(self.right)
        cells = at[:, :, None] * size + at[:, None, :]
        self.matrix += np.bincount(cells.ravel(), weights=whole.ravel(), minlength=size * size).reshape(size, size)
        self.right -= np.bincount(at.ravel(), weights=blocks[:, :7, 7].ravel(), minlength=size)


def polish(
    shapes: Shapes,
    pose: Floats,
    component: Ints,
    joined: Joined,
    links: Links,
    *,
    gap: float,
    free: Bools | None = None,
    rounds: int = ROUNDS,
    widest: float = WIDEST,
    sharpest: float = SHARPEST,
    gap_sigma: float = np.inf,
    expected: float | None = None,
    trust: float = HOLD,
    turning: bool = True,
) -> Polished:
    """Fits poses and the gap.

    Args:
        component: (N,) contacts are looked for inside a component; -1 is left alone.
        free: (N,) what may move; None: everything. The largest fragment of a component without a fixed one stays.
        gap: where the gap starts, px.
        gap_sigma: how far it may be from what is expected, px; 0 fixes it where it starts.
        expected: the gap that hypotheses were measured at; None: where it starts. A grid of straight seams fits at any
            gap, so there this decides.
    """
    n = len(pose)
    pose, expected = pose.copy(), gap if expected is None else expected
    moving = (component >= 0) & (np.ones(n, dtype=bool) if free is None else free)
    hold = _anchors(shapes, component, moving)
    variable = moving & ~hold
    a, b = np.nonzero(component[:, None] == component)
    some = (a != b) & (component[a] >= 0) & (moving[a] | moving[b])
    a, b = a[some], b[some]
    size, sigma = shapes.size, ALONG * shapes.outlines.step
    seams = _Seams.of(a, b, joined)
    scatter, system = 0.0, _System.empty(variable)
    for turn in range(rounds):
        scale = max(size * widest * (sharpest / widest) ** (turn / max(1, rounds - 1)), 2 * noise_of(gap))
        system = _System.empty(variable)
        reach = min(shapes.reach, max(gap, 0.0) + 3 * scale)
        near = shapes.near(pose, a, b, reach)
        i, j = a[near], b[near]
        noise = max(scale / 3, noise_of(gap))
        blocks, count = engine.contacts(
            shapes.rasters, Pairs(i, j, pose[i], pose[j]), gap, scale, reach, FACING, 1.0 / (APART * noise**2)
        )
        if turn == rounds - 1:
            scatter = float(np.sqrt(blocks[:, 7, 7].sum() / max(blocks[:, 6, 6].sum(), 1e-12)))
        some = count > 0
        system.add(i[some], j[some], blocks[some])
        seams.add_to(system, shapes, pose, reach + sigma, sigma)
        _add_links(system, pose, links, trust)
        if np.isfinite(gap_sigma) and gap_sigma > 0:
            system.matrix[-1, -1] += gap_sigma**-2
            system.right[-1] -= (gap - expected) * gap_sigma**-2
        move = _solve(system, turning, None if gap_sigma > 0 else 0.0)
        low, high = -OVERLAP * size - gap, shapes.reach - gap
        if move is not None and not low <= move[-1] <= high:
            # Poses that were fitted for a gap that cannot be would drift from round to round.
            move = _solve(system, turning, float(np.clip(move[-1], low, high)))
        if move is None:
            break
        step_pose = move[:-4].reshape(-1, 3)
        limit = np.minimum(1.0, 0.3 * size / np.maximum(np.hypot(*step_pose[:, :2].T), 1e-9))
        pose[variable] += step_pose * limit[:, None]
        pose[variable, 2] = angles.wrap(pose[variable, 2])
        gap += float(move[-1])
    information = np.zeros((n, 3, 3))
    at = np.arange(int(variable.sum()))
    information[variable] = system.matrix[:-4, :-4].reshape(len(at), 3, len(at), 3)[at, :, at, :]
    return Polished(pose, gap, scatter, information)


def noise_of(gap: float) -> float:
    """Standard deviation of a contact, px."""
    return max(NOISE, WEAR * gap)


def _anchors(shapes: Shapes, component: Ints, moving: Bools) -> Bools:
    """(N,) one fragment of every component that has no fixed one: the largest."""
    hold = np.zeros(len(component), dtype=bool)
    for part in np.unique(component[component >= 0]):
        inside = np.flatnonzero(component == part)
        if moving[inside].all():
            hold[inside[np.argmax(shapes.area[inside])]] = True
    return hold


class _Seams(NamedTuple):
    """Matches inside components, by pairs of fragments. Shapes: a, b (K,); row, s, t, strength (M,)."""

    a: Ints
    b: Ints
    row: Ints
    s: Ints
    t: Ints
    strength: Floats

    @classmethod
    def of(cls, a: Ints, b: Ints, joined: Joined) -> _Seams:
        """Those of given pairs, each taken once."""
        a, b = a[a < b], b[a < b]
        return cls(a, b, *joined.between(a, b))

    def add_to(self, system: _System, shapes: Shapes, pose: Floats, reach: float, sigma: float) -> None:
        """Matches whose samples lie together hold them along the seam."""
        pairs = Pairs(self.a, self.b, pose[self.a], pose[self.b])
        blocks = np.zeros((len(pairs), engine.ROW, engine.ROW))
        unit = 1.0 / (APART * sigma**2)
        engine.matches(shapes.rasters, pairs, self.row, self.s, self.t, self.strength, reach, sigma, unit, blocks)
        system.add(self.a, self.b, blocks)


def fit(scene_shapes: Shapes, joined: Joined, pose: Floats, members: Ints, moves: Bools, gap: float) -> Floats:
    """A short fit of some fragments at a known gap, compiled: their poses. Shapes: members, moves (B,) -> (B, 3)."""
    shapes, size = scene_shapes, scene_shapes.size
    a, b = (part.ravel() for part in np.meshgrid(np.arange(len(members)), np.arange(len(members)), indexing="ij"))
    some = (a != b) & (moves[a] | moves[b])
    some[some] = shapes.near(pose, members[a[some]], members[b[some]], gap + 3 * QUICK[0] * size)
    a, b = a[some], b[some]
    row, s, t, strength = joined.between(members[a], members[b])
    strength = np.where(a[row] < b[row], strength, 0.0)  # each match once
    joints = engine.Joints(np.stack([a, b], axis=1), row, s, t, strength)
    scales = engine.Scales(
        gap, QUICK[0] * size, max(QUICK[1] * size, 2 * noise_of(gap)), noise_of(gap), FACING, APART,
        ALONG * shapes.outlines.step, 1e-4, 1e-4 * size**2, 0.2 * size,
    )  # fmt: skip
    return engine.fit(shapes.rasters, members, pose[members], moves, joints, scales, QUICK_ROUNDS)


def _add_links(system: _System, pose: Floats, links: Links, hold: float) -> None:
    """Hypotheses, robustly: one that disagrees by many standard deviations counts nothing."""
    if not len(links.i):
        return
    a, b = links.i, links.j
    error = motion.difference(motion.between(pose[a], pose[b]), links.i_from_j)
    distance = np.einsum("ka,kab,kb->k", error, links.information, error)
    weight = hold * (9.0 / (9.0 + distance)) ** 2
    rows = np.zeros((len(a), 3, engine.ROW))
    back = angles.matrix(-pose[a, 2])
    rows[:, :2, 0:2], rows[:, :2, 3:5] = -back, back
    rows[:, :2, 2] = -motion.swing(-pose[a, 2], pose[b, :2] - pose[a, :2])
    rows[:, 2, 2], rows[:, 2, 5] = -1.0, 1.0
    rows[:, :, 7] = error
    system.add(a, b, weight[:, None, None] * (rows.transpose(0, 2, 1) @ links.information @ rows))


def _solve(system: _System, turning: bool, gap: float | None) -> Floats | None:
    """The step of all variables, 0 for what is fixed; None when there is none. `gap`: its step, None to fit it."""
    free = np.ones(len(system.right), dtype=bool)
    free[2::3] = turning
    free[-4:-1] = False
    free[-1] = gap is None
    at = np.flatnonzero(free)
    out = np.zeros(len(free))
    out[-1] = gap or 0.0
    if not len(at):
        return None
    matrix = system.matrix[np.ix_(at, at)]
    matrix[np.diag_indices(len(at))] *= 1.0 + 1e-6
    matrix[np.diag_indices(len(at))] += 1e-9
    try:
        right = system.right[at] - system.matrix[at, -1] * out[-1]
        out[at] = cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False)
    except LinAlgError:
        return None
    return out
