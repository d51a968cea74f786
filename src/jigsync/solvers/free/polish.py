"""Joint polish: Gauss-Newton over the poses of many fragments and one gap that all their contacts share.

    r_c = (P - Q) . N - g        at every contact: P a sample of a, Q and N the nearest outline point of b and its normal
    r_m = (P - Q) . T            at every match that lies together: along the seam, weakly
    r_h = i_from_j - measured    of every hypothesis that is believed, weakly

Contacts are found anew each round, and their robust scale shrinks from round to round, so that drift of several pixels
is pulled together before the fit becomes sharp. What erosion took off is not known beforehand: g is found with the
poses, from what loops of fragments leave over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jigsync.solvers.free import motion
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.shapes import Shapes
from jigsync.values import angles
from jigsync.values.outlines import Matches

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

WIDEST, SHARPEST = 0.05, 0.008
"""Robust scale of a contact in the first and in the last round, in units of the median fragment's size."""
APART: Final = 4.0
"""Samples along an outline whose errors are one error: contacts count a quarter each."""
ALONG: Final = 2.0
"""Standard deviation of a match along its seam, in steps of the outline."""
HOLD: Final = 1e-3
"""Of a hypothesis' information: it holds what no contact holds, and bends to what contacts say."""
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

    def add(self, a: Ints, b: Ints, jacobian: Floats, residual: Floats, weight: Floats) -> None:
        """Rows of the same (a, b) need not lie together. Shapes: (M,), (M,), (M, 7), (M,), (M,)."""
        if not len(a):
            return
        n = len(self.place)
        group, inverse = np.unique(a * n + b, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(group)))
        rows = jacobian[order]
        weighted = rows * weight[order, None]
        blocks = np.add.reduceat(weighted[:, :, None] * rows[:, None, :], starts)
        sums = np.add.reduceat(weighted * residual[order, None], starts)
        a, b = self.place[group // n], self.place[group % n]
        last = np.full(len(group), len(self.right) - 1)
        at = np.stack([3 * a, 3 * a + 1, 3 * a + 2, 3 * b, 3 * b + 1, 3 * b + 2, last], axis=1)
        np.add.at(self.matrix, (at[:, :, None], at[:, None, :]), blocks)
        np.add.at(self.right, at, -sums)


def polish(
    shapes: Shapes,
    pose: Floats,
    component: Ints,
    matches: Matches,
    links: Links,
    *,
    gap: float,
    free: Bools | None = None,
    rounds: int = 12,
    widest: float = WIDEST,
    sharpest: float = SHARPEST,
    gap_sigma: float = np.inf,
) -> Polished:
    """Fits poses and the gap.

    Args:
        component: (N,) contacts are looked for inside a component; -1 is left alone.
        free: (N,) what may move; None: everything. The largest fragment of a component without a fixed one stays.
        gap: where the gap starts, px.
        gap_sigma: how far it may move from there; 0 fixes it.
    """
    n = len(pose)
    pose, start = pose.copy(), gap
    moving = (component >= 0) & (np.ones(n, dtype=bool) if free is None else free)
    hold = _anchors(shapes, component, moving)
    variable = moving & ~hold
    a, b = np.nonzero(component[:, None] == component)
    some = (a != b) & (component[a] >= 0) & (moving[a] | moving[b])
    a, b = a[some], b[some]
    owner = shapes.outlines.owner
    size, step = shapes.size, shapes.outlines.step
    together = (component[owner[matches.s]] == component[owner[matches.t]]) & (component[owner[matches.s]] >= 0)
    together &= moving[owner[matches.s]] | moving[owner[matches.t]]
    match_s, match_t, strength = matches.s[together], matches.t[together], matches.strength[together]
    scatter, system = 0.0, _System.empty(variable)
    for turn in range(rounds):
        scale = size * widest * (sharpest / widest) ** (turn / max(1, rounds - 1))
        system = _System.empty(variable)
        reach = min(shapes.reach, max(gap, 0.0) + 3 * scale)
        near = shapes.near(pose, a, b, reach)
        i, j = a[near], b[near]
        found = shapes.contacts(i, j, motion.between(pose[i], pose[j]), reach)
        facing = found.facing > FACING
        found = type(found)(*(part[facing] for part in found))
        residual = found.distance - gap
        weight = (scale**2 / (scale**2 + residual**2)) ** 2
        normal = angles.act(pose[j[found.pair], 2], shapes.outlines.normal[found.t])
        jacobian = _jacobian(shapes, pose, i[found.pair], j[found.pair], found.s, found.t, normal)
        jacobian[:, 6] = -1.0
        noise = max(scale / 3, 0.5)
        system.add(i[found.pair], j[found.pair], jacobian, residual, weight * found.facing / (APART * noise**2))
        scatter = 1.4826 * float(np.median(np.abs(residual))) if len(residual) else 0.0
        _add_matches(system, shapes, pose, match_s, match_t, strength, reach + ALONG * step)
        _add_links(system, pose, links)
        if np.isfinite(gap_sigma) and gap_sigma > 0:
            system.matrix[-1, -1] += gap_sigma**-2
            system.right[-1] -= (gap - start) * gap_sigma**-2
        move = _solve(system, gap_sigma > 0)
        if move is None:
            break
        step_pose = move[:-4].reshape(-1, 3)
        limit = np.minimum(1.0, 0.3 * size / np.maximum(np.hypot(*step_pose[:, :2].T), 1e-9))
        pose[variable] += step_pose * limit[:, None]
        pose[:, 2] = angles.wrap(pose[:, 2])
        gap = float(np.clip(gap + move[-1], 0.0, shapes.reach))
    information = np.zeros((n, 3, 3))
    blocks = np.arange(int(variable.sum()))
    square = system.matrix[:-4, :-4].reshape(len(blocks), 3, len(blocks), 3)
    information[variable] = square[blocks, :, blocks, :]
    return Polished(pose, gap, scatter, information)


def _anchors(shapes: Shapes, component: Ints, moving: Bools) -> Bools:
    """(N,) one fragment of every component that has no fixed one: the largest."""
    hold = np.zeros(len(component), dtype=bool)
    for part in np.unique(component[component >= 0]):
        inside = np.flatnonzero(component == part)
        if moving[inside].all():
            hold[inside[np.argmax(shapes.area[inside])]] = True
    return hold


def _jacobian(shapes: Shapes, pose: Floats, a: Ints, b: Ints, s: Ints, t: Ints, direction: Floats) -> Floats:
    """Of (P - Q) . direction by the two poses; a column for the gap is left 0. Shapes: (M,) ... -> (M, 7)."""
    out = np.zeros((len(s), 7))
    out[:, 0:2] = direction
    out[:, 2] = np.einsum("kx,kx->k", motion.swing(pose[a, 2], shapes.outlines.xy[s]), direction)
    out[:, 3:5] = -direction
    out[:, 5] = -np.einsum("kx,kx->k", motion.swing(pose[b, 2], shapes.outlines.xy[t]), direction)
    return out


def _add_matches(
    system: _System, shapes: Shapes, pose: Floats, s: Ints, t: Ints, strength: Floats, reach: float
) -> None:
    """Matches whose samples lie together hold them along the seam."""
    if not len(s):
        return
    owner, xy = shapes.outlines.owner, shapes.outlines.xy
    off = motion.apply(pose[owner[s]], xy[s]) - motion.apply(pose[owner[t]], xy[t])
    near = np.hypot(*off.T) < reach
    s, t, off, strength = s[near], t[near], off[near], strength[near]
    a, b = owner[s], owner[t]
    tangent = angles.act(pose[b, 2] + angles.QUARTER, shapes.outlines.normal[t])
    residual = np.einsum("kx,kx->k", off, tangent)
    sigma = ALONG * shapes.outlines.step
    weight = strength * (sigma**2 / (sigma**2 + residual**2)) ** 2 / (APART * sigma**2)
    system.add(a, b, _jacobian(shapes, pose, a, b, s, t, tangent), residual, weight)


def _add_links(system: _System, pose: Floats, links: Links) -> None:
    """Hypotheses, robustly: one that disagrees by many standard deviations counts nothing."""
    if not len(links.i):
        return
    a, b = links.i, links.j
    error = motion.difference(motion.between(pose[a], pose[b]), links.i_from_j)
    distance = np.einsum("ka,kab,kb->k", error, links.information, error)
    weight = HOLD * (9.0 / (9.0 + distance)) ** 2
    jacobian = np.zeros((len(a), 3, 7))
    back = angles.matrix(-pose[a, 2])
    jacobian[:, :2, 0:2], jacobian[:, :2, 3:5] = -back, back
    jacobian[:, :2, 2] = -motion.swing(-pose[a, 2], pose[b, :2] - pose[a, :2])
    jacobian[:, 2, 2], jacobian[:, 2, 5] = -1.0, 1.0
    factor = np.linalg.cholesky(links.information + 1e-12 * np.eye(3)).transpose(0, 2, 1)  # information = L L^T
    rows = np.einsum("kab,kbc->kac", factor, jacobian).reshape(-1, 7)
    residual = np.einsum("kab,kb->ka", factor, error).ravel()
    system.add(np.repeat(a, 3), np.repeat(b, 3), rows, residual, np.repeat(weight, 3))


def _solve(system: _System, with_gap: bool) -> Floats | None:
    """The step of all variables, 0 for what is fixed; None when there is none."""
    free = np.ones(len(system.right), dtype=bool)
    free[-4:-1] = False
    free[-1] = with_gap
    at = np.flatnonzero(free)
    out = np.zeros(len(free))
    if not len(at):
        return None
    matrix = system.matrix[np.ix_(at, at)]
    matrix[np.diag_indices(len(at))] *= 1.0 + 1e-6
    matrix[np.diag_indices(len(at))] += 1e-9
    try:
        out[at] = cho_solve(cho_factor(matrix, check_finite=False), system.right[at], check_finite=False)
    except LinAlgError:
        return None
    return out
