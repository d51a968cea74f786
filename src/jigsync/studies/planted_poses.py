"""Planted pose graphs: pair hypotheses with known poses and without pixels, to judge what solves from what measures.

Fragments are points of very different spacing; two touch when no third lies in the circle between them. A contact is
measured across its seam: with m the seam's middle, seen from i, and (e_x, e_y, e_a) the errors across it, along it and
of the angle,

    i_from_j is off by   (e_x, e_y) + e_a R'(0) (xy - m)   and   e_a

so its information has large entries between position and angle, and a seam that slides is known only across.
What exists (`Exists`) is kept apart from what is damaged (`Damage`): without damage every hypothesis is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.score.motion import Motion, Pairs, best_motion
from jigsync.score.poses import SHARE
from jigsync.values import angles
from jigsync.values.hypotheses import Floats, Ints, PairHypotheses
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.measurements import Measurements
from jigsync.values.pose import Pose


@dataclass(frozen=True)
class Exists:
    """What is there.

    Attributes:
        n: fragments.
        components: parts with no contact between them, as unlike in size as n allows.
        pitch: mean distance of neighbours, px.
        across, along, tilt: standard deviations that a typical contact is measured with: px, px, radians.
    """

    n: int
    components: int = 1
    pitch: float = 110.0
    across: float = 0.8
    along: float = 2.0
    tilt: float = math.radians(1.2)


@dataclass(frozen=True)
class Damage:
    """What is wrong with the hypotheses.

    Attributes:
        noise: errors in units of what the information states: 1 is honest, 3 is a measurer that is too sure.
        replaced: share of the contacts of which only wrong hypotheses are listed.
        rivals: wrong hypotheses per contact, beside the true one.
        strays: wrong hypotheses per contact, between fragments that do not touch.
        blur: how much the log-odds of true and wrong hypotheses overlap: 0 not at all, 1 by a third or so.
    """

    noise: float = 0.0
    replaced: float = 0.0
    rivals: float = 0.0
    strays: float = 0.0
    blur: float = 0.5


@dataclass(frozen=True, eq=False)
class PlantedPoses:
    """Hypotheses and the poses they were made from.

    Attributes:
        ids: neither consecutive nor in any order of the poses.
        hypotheses: true and wrong ones, shuffled, each said from either side.
        true: (H,) bool.
        angle, xy: (N,), (N, 2) canvas_from_frag.
        size: (N,) what the square root of a fragment's area would be, px.
        component: (N,) which part a fragment belongs to.
    """

    ids: tuple[str, ...]
    hypotheses: PairHypotheses
    true: NDArray[np.bool_]
    angle: Floats
    xy: Floats
    size: Floats
    component: Ints

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.ids)

    def pose(self, k: int) -> Pose:
        """canvas_from_frag of one fragment."""
        return Pose(float(self.angle[k]), (float(self.xy[k, 0]), float(self.xy[k, 1])))

    @property
    def measurements(self) -> Measurements:
        """What a measurer would have handed over."""
        return Measurements(self.ids, Hypothesised(self.hypotheses, float(np.median(self.size))))

    def which(self, angle: Floats, xy: Floats, members: Ints | None = None) -> NDArray[np.bool_]:
        """(M,) which of the members (all) are right after the best motion. Shapes: angle (N,), xy (N, 2)."""
        answer = self._answer(angle, xy, members)
        motion = best_motion(answer)
        return np.zeros(0, dtype=bool) if motion is None else answer.right(motion)

    def right(self, angle: Floats, xy: Floats, members: Ints | None = None) -> float:
        """Share of the members (all) that are right after the best motion."""
        return float(self.which(angle, xy, members).mean())

    def stands(self, angle: Floats, xy: Floats, members: Ints | None = None) -> float:
        """Share of the members (all) that are right in the truth's own frame."""
        return float(self._answer(angle, xy, members).right(Motion(0.0, (0.0, 0.0))).mean())

    def _answer(self, angle: Floats, xy: Floats, members: Ints | None) -> Pairs:
        every = Pairs(angles.wrap(self.angle - angle), xy, self.xy, SHARE * self.size)
        return every if members is None else every.keep(np.isin(np.arange(self.n), members))


def plant_poses(exists: Exists, damage: Damage, rng: np.random.Generator) -> PlantedPoses:
    """A planted pose graph."""
    sizes = _part_sizes(exists)
    parts = [_sites(count, exists.pitch, rng) for count in sizes]
    width = 2 * max(np.ptp(part, axis=0).max(initial=exists.pitch) for part in parts)
    xy = np.concatenate([part + np.array([k * width, 0.0]) for k, part in enumerate(parts)])
    component = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(exists.n)
    xy, component = xy[order], component[order]
    angle = rng.uniform(-math.pi, math.pi, exists.n)
    contacts, size = _contacts(xy, component)
    hypotheses, true = _measured(exists, damage, contacts, angle, xy, size, component, rng)
    ids = tuple(f"f{3 * k + 7:04d}" for k in rng.permutation(exists.n))
    return PlantedPoses(ids, hypotheses, true, angle, xy, size, component)


def _part_sizes(exists: Exists) -> list[int]:
    """Each part about half of what is left, the last takes the rest; at least two fragments each where n allows."""
    sizes, left = [], exists.n
    for k in range(exists.components, 1, -1):
        sizes.append(max(left // 2 + 1 if left // 2 + 1 <= left - 2 * (k - 1) else left - 2 * (k - 1), 1))
        left -= sizes[-1]
    return [*sizes, left]


def _sites(n: int, pitch: float, rng: np.random.Generator) -> Floats:
    """(n, 2) points by best-candidate sampling, three times as dense on the left as on the right."""
    points = rng.random((1, 2))
    while len(points) < n:
        tried = rng.random((20, 2))
        gap = np.linalg.norm(tried[:, None] - points[None], axis=-1).min(axis=1)
        points = np.concatenate([points, tried[[gap.argmax()]]])
    points[:, 0] = points[:, 0] * (0.5 + 0.5 * points[:, 0])
    return np.asarray(points * pitch * math.sqrt(n / 0.75))


def _contacts(xy: Floats, component: Ints) -> tuple[Ints, Floats]:
    """Gabriel's graph of each part, (C, 2) pairs i < j, and (N,) the mean distance to what a fragment touches."""
    n = len(xy)
    d2 = np.sum((xy[:, None] - xy[None]) ** 2, axis=-1)
    np.fill_diagonal(d2, np.inf)
    apart = component[:, None] != component[None]
    d2[apart] = np.inf
    i, j = np.nonzero(np.triu(np.isfinite(d2), 1))
    free = np.array(
        [np.all(d2[a] + d2[b] >= d2[a, b]) for a, b in zip(i.tolist(), j.tolist(), strict=True)], dtype=bool
    )
    i, j = i[free], j[free]
    length = np.sqrt(d2[i, j])
    total = np.bincount(i, length, n) + np.bincount(j, length, n)
    count = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
    mean = float(length.mean()) if len(length) else 1.0
    return np.stack([i, j], axis=1), np.where(count > 0, total / np.maximum(count, 1), mean)


def _measured(
    exists: Exists,
    damage: Damage,
    contacts: Ints,
    angle: Floats,
    xy: Floats,
    size: Floats,
    component: Ints,
    rng: np.random.Generator,
) -> tuple[PairHypotheses, NDArray[np.bool_]]:
    """The hypotheses and which of them are true."""
    n, c = exists.n, len(contacts)
    has_true = rng.random(c) >= damage.replaced
    rivals = rng.poisson(damage.rivals, c) + ~has_true
    far = _strays(rng.poisson(damage.strays * c) if damage.strays else 0, contacts, component, rng)
    ends = np.concatenate([contacts[has_true], np.repeat(contacts, rivals, axis=0), far])
    true = np.arange(len(ends)) < has_true.sum()
    flip = rng.random(len(ends)) < 0.5
    i, j = np.where(flip, ends[:, 1], ends[:, 0]), np.where(flip, ends[:, 0], ends[:, 1])
    turn = angles.wrap(angle[j] - angle[i])
    offset = angles.act(-angle[i], xy[j] - xy[i])
    wrong = ~true
    reach = (size[i] + size[j])[wrong, None] / 2 * rng.uniform(0.7, 1.3, (int(wrong.sum()), 1))
    turn[wrong] = rng.uniform(-math.pi, math.pi, int(wrong.sum()))
    bearing = rng.uniform(-math.pi, math.pi, int(wrong.sum()))
    offset[wrong] = angles.act(bearing, reach * np.array([1.0, 0.0]))
    error, information = _errors(exists, offset, size[i], size[j], rng)
    log_odds = np.where(true, 3.0, -1.0) + damage.blur * rng.normal(0.0, 3.0, len(ends))
    made = PairHypotheses(
        n,
        i,
        j,
        angles.wrap(turn + damage.noise * error[:, 2]),
        offset + damage.noise * error[:, :2],
        np.clip(log_odds, -8.0, 8.0),
        information,
    )
    order = rng.permutation(len(ends))
    return made.keep(order), true[order]


def _strays(count: int, contacts: Ints, component: Ints, rng: np.random.Generator) -> Ints:
    """(S, 2) pairs i < j of one part that do not touch."""
    i, j = np.triu_indices(len(component), 1)
    touching = np.isin(i * len(component) + j, contacts[:, 0] * len(component) + contacts[:, 1])
    pool = np.flatnonzero(~touching & (component[i] == component[j]))
    chosen = rng.choice(pool, count) if len(pool) else pool
    return np.stack([i[chosen], j[chosen]], axis=1)


def _errors(
    exists: Exists, offset: Floats, size_i: Floats, size_j: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """(H, 3) errors of (x, y, angle) of one standard deviation each, and (H, 3, 3) the information that says so.

    The seam's middle lies between the two centres as their sizes have it; a short seam tells the angle badly.
    """
    h = len(offset)
    scale = np.minimum(size_i, size_j) / exists.pitch
    sigma = np.stack(
        [
            exists.across * rng.uniform(0.6, 1.4, h),
            exists.along * rng.uniform(0.5, 3.0, h),
            exists.tilt * rng.uniform(0.6, 1.4, h) / scale,
        ],
        axis=1,
    )
    across = offset / np.linalg.norm(offset, axis=1, keepdims=True)
    # error = basis (e_x, e_y, e_a): along is across turned by 90 degrees, and R'(0) = R(90 degrees)
    basis = np.zeros((h, 3, 3))
    basis[:, :2, 0] = across
    basis[:, :2, 1] = angles.act(angles.QUARTER, across)
    basis[:, :2, 2] = angles.act(angles.QUARTER, offset * (size_j / (size_i + size_j))[:, None])
    basis[:, 2, 2] = 1.0
    scaled: NDArray[Any] = basis * sigma[:, None, :]
    error = np.einsum("hab,hb->ha", scaled, rng.normal(size=(h, 3)))
    inverse = np.linalg.inv(scaled)
    return error, np.asarray(np.einsum("hba,hbc->hac", inverse, inverse))
