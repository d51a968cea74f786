"""What speaks for a pose of two fragments: how much of the outlines it brings together, and what their codes say there.

Under a pose i_from_j, samples of the two that face each other within REACH steps of the gap are in *contact*. The
evidence of a contact s, t is what its match is worth against a match by chance,

    e = log(floor + sqrt(p(t | s) p(s | t)) / chance),    chance = 1 / T

with the best t of three neighbours; a contact where the network expects another mate, or none, speaks against the pose.
What lies deeper than REACH steps inside the other fragment is *overlap*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from jigsync.measure.contour_matches import SampleCodes
from jigsync.measure.contour_poses import OPPOSITE, PairPoses
from jigsync.measure.outline import LEVEL, Scan
from jigsync.measure.outline_features import neighbours
from jigsync.values import angles
from jigsync.values.outlines import Floats, Ints, Outlines

REACH: Final = 2.0
"""Steps."""
FLOOR: Final = 1.0
FEATURES: Final = (
    "bias", "evidence", "mean evidence", "worth", "contact", "overlap", "agreeing", "size of the puzzle", "rest",
)  # fmt: skip
"""What the log-odds are made of; `described` gives them in this order."""
STRONG: Final = 2.0
"""Evidence of a contact that agrees."""
APART: Final = 3.0
"""Samples along an outline that say one thing: evidence of neighbours is the same evidence."""
ACROSS: Final = 0.1
"""Standard deviation of a contact across the seam where nothing is worn, in steps."""
ALONG: Final = 2.0
"""The same along the seam, in those across it, beside one step: a mate one sample off is as good to the network."""
LONG: Final = 5.0
"""Samples along an outline whose errors are the same: what wear takes off changes slowly."""
GAP_DOUBT: Final = 0.1, 0.25
"""Standard deviation of the gap: steps, and a share of it."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """C contacts of H poses.

    Shapes: pose, s, t (C,) int64, s on fragment i and t on j; evidence (C,); overlap (H,) share of the outlines.
    """

    pose: Ints
    s: Ints
    t: Ints
    evidence: Floats
    overlap: Floats


@dataclass(frozen=True, eq=False)
class Depths:
    """How deep places are inside fragments, of all fragments in one array.

    Attributes:
        flat: depths in px of the fragment, 0 outside.
        first, width, height: of each fragment's grid.
        scale: px of the fragment per grid point.
        centre: (N, 2) the fragment's centre on its grid.
    """

    flat: NDArray[np.float32]
    first: Ints
    width: Ints
    height: Ints
    scale: Ints
    centre: Floats

    @classmethod
    def of(cls, scans: list[Scan]) -> Depths:
        """From scans."""
        grids = [
            cv2.distanceTransform((scan.pixels[..., 3] > LEVEL).astype(np.uint8), cv2.DIST_L2, 3) * scan.per_pixel
            for scan in scans
        ]
        sizes = np.array([grid.shape for grid in grids], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(sizes.prod(axis=1))[:-1]]).astype(np.int64)
        return cls(
            np.concatenate([grid.ravel() for grid in grids]).astype(np.float32),
            first,
            sizes[:, 1],
            sizes[:, 0],
            np.array([scan.per_pixel for scan in scans], dtype=np.int64),
            np.array([scan.centre for scan in scans]),
        )

    def at(self, fragment: Ints, z: NDArray[np.complex128]) -> NDArray[np.float32]:
        """Depths of places in fragments' frames, `angles.plane`. Shapes: (M,), (M,) -> (M,)."""
        xy = angles.vectors(z) / self.scale[fragment][:, None] + self.centre[fragment]
        col, row = np.floor(xy).astype(np.int64).T
        inside = (col >= 0) & (row >= 0) & (col < self.width[fragment]) & (row < self.height[fragment])
        at = self.first[fragment] + np.where(inside, row * self.width[fragment] + col, 0)
        return np.where(inside, self.flat[at], 0).astype(np.float32)


def contacts(
    poses: PairPoses, outlines: Outlines, codes: SampleCodes, log_all: NDArray[np.float32], depths: Depths, gap: float
) -> Contacts:
    """All contacts of poses, each sample's nearest.

    Args:
        log_all: (T,) log of what p(t | s) is divided by.
        gap: between outlines, px.
    """
    step = outlines.step
    normal = angles.plane(outlines.normal)
    plain = angles.plane(outlines.xy)
    points = plain + gap / 2 * normal
    trees: dict[int, cKDTree] = {}
    parts: list[tuple[Ints, Ints, Ints]] = []
    overlap = np.zeros(len(poses))
    start = outlines.start
    for k in range(len(poses)):
        i, j = int(poses.i[k]), int(poses.j[k])
        if i not in trees:
            trees[i] = cKDTree(angles.vectors(points[start[i] : start[i + 1]]))
        mine, theirs = np.arange(start[i], start[i + 1]), np.arange(start[j], start[j + 1])
        moved = poses.phase[k] * points[theirs] + poses.xy[k]
        away, near = map(np.asarray, trees[i].query(angles.vectors(moved), distance_upper_bound=REACH * step))
        close = np.flatnonzero(away < np.inf)
        s, t = mine[near[close]], theirs[close]
        facing = (poses.phase[k] * normal[t] * normal[s].conj()).real < OPPOSITE
        parts.append((np.full(int(facing.sum()), k), s[facing], t[facing]))
        there = depths.at(np.full(len(theirs), i), poses.phase[k] * plain[theirs] + poses.xy[k])
        back = depths.at(np.full(len(mine), j), (plain[mine] - poses.xy[k]) * poses.phase[k].conj())
        inside = np.count_nonzero(there > REACH * step) + np.count_nonzero(back > REACH * step)
        overlap[k] = inside / min(len(mine), len(theirs))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Contacts(nothing, nothing, nothing, np.zeros(0), overlap)
    pose, s, t = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Contacts(pose, s, t, _evidence(s, t, outlines, codes, log_all), overlap)


def _evidence(s: Ints, t: Ints, outlines: Outlines, codes: SampleCodes, log_all: NDArray[np.float32]) -> Floats:
    around = neighbours(outlines.start, (-1, 0, 1))[t]
    best = np.full(len(s), -np.inf)
    for column in around.T:
        score = np.einsum("me,me->m", codes.f[s], codes.g[column]) + np.einsum("me,me->m", codes.g[s], codes.f[column])
        best = np.maximum(best, score - (log_all[s] + log_all[column]) / 2)
    return np.asarray(np.log(FLOOR + np.exp(np.minimum(best, 0.0)) * len(log_all)))


def described(poses: PairPoses, found: Contacts, outlines: Outlines) -> Floats:
    """What the log-odds of poses are made of, `FEATURES`. Shapes: -> (H, len(FEATURES))."""
    h = len(poses)
    count = np.bincount(found.pose, minlength=h).astype(np.float64)
    evidence = np.bincount(found.pose, found.evidence, h)
    agreeing = np.bincount(found.pose, found.evidence > STRONG, h)
    length = np.diff(outlines.start)
    least = np.minimum(length[poses.i], length[poses.j])
    # Of poses of one pair at most one is true: what the worthiest other one has speaks against this one.
    key = poses.i * outlines.n + poses.j
    order = np.lexsort((-evidence, key))
    first = np.ones(h, dtype=bool)
    first[1:] = key[order][1:] != key[order][:-1]
    best = np.maximum.accumulate(np.where(first, np.arange(h), 0))
    rest = np.zeros(h)
    rest[order] = np.where(first, 0.0, evidence[order][best] - evidence[order]) if h else 0.0
    return np.stack(
        [
            np.ones(h),
            np.log1p(evidence / APART),
            evidence / np.maximum(count, 1) / 4,
            np.log1p(poses.worth),
            count / least,
            np.minimum(found.overlap, 0.5) * 4,
            agreeing / np.maximum(count, 1),
            np.full(h, np.log(outlines.n / 20)),
            np.log1p(rest / APART),
        ],
        axis=1,
    )


def information(poses: PairPoses, found: Contacts, outlines: Outlines, gap: float) -> Floats:
    """Normal equations of the agreeing contacts: x_i = R x_j + xy, strong across the seam and weak along it.

    A contact at p = R x_j + xy in i's frame, with the normal n and the tangent m of s, says of e = (dx, dy, da)

        n . (d + da J p') ~ N(0, LONG s^2),                         s^2 = (ACROSS step)^2 + r^2
        m . (d + da J p') ~ N(0, LONG (step^2 + (ALONG s)^2))

    J p' being how R x_j moves as the angle grows, and r the root mean square of what is left across the pose's seam. A
    gap that is off by its doubt u moves a pose by A^-1 b u, with A the sum of all that and b its part for n . n = 1:

        information = A - b b^T / (1 / u^2 + b^T A^-1 b)

    Shapes: -> (H, 3, 3).
    """
    step, h = outlines.step, len(poses)
    pose, s, t = found.pose, found.s, found.t
    normal = angles.plane(outlines.normal)
    points = angles.plane(outlines.xy) + gap / 2 * normal
    arm = poses.phase[pose] * points[t]
    left = ((points[s] - arm - poses.xy[pose]) * normal[s].conj()).real
    agree = np.clip(found.evidence / STRONG, 0.0, 1.0)
    spread = np.bincount(pose, agree * left**2, h) / np.maximum(np.bincount(pose, agree, h), 1e-9)
    variance = (ACROSS * step) ** 2 + spread[pose]
    weight, aside = agree / (LONG * variance), agree / (LONG * (step**2 + ALONG**2 * variance))
    across = outlines.normal[s]
    along = np.stack([-across[:, 1], across[:, 0]], axis=1)
    moved = angles.vectors(1j * arm)
    whole, of_gap = np.zeros((h, 3, 3)), np.zeros((h, 3))
    for direction, share in ((across, weight), (along, aside)):
        row = np.concatenate([direction, (direction * moved).sum(axis=1, keepdims=True)], axis=1)
        np.add.at(whole, pose, share[:, None, None] * row[:, :, None] * row[:, None, :])
        if direction is across:
            np.add.at(of_gap, pose, share[:, None] * row)
    doubt = GAP_DOUBT[0] * step + GAP_DOUBT[1] * gap
    steady = whole + np.diag([1e-9, 1e-9, 1e-9 * step**2])
    pull = np.einsum("hk,hk->h", of_gap, np.linalg.solve(steady, of_gap[..., None])[..., 0])
    return np.asarray(whole - of_gap[:, :, None] * of_gap[:, None, :] / (1 / doubt**2 + pull)[:, None, None])
