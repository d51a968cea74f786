"""Planted pair hypotheses: matches and hypotheses of known quality made from true poses, to judge assembly by itself.

Every pair of fragments whose outlines run against each other in the true picture has a *seam*. Its samples match with
a probability, jittered along the outline; its hypothesis is the true pose, closed by a share of the gap and turned and
moved about the seam's middle. False hypotheses are pieces of two outlines that run alike: of many random places the
one that fits best, with matches that say so. Log-odds of true and false ones overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.outlines import Matches, Outlines
from jigsync.values.pose import Pose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Quality:
    """How good planted hypotheses are.

    Attributes:
        found: share of the seams of typical length that have a true hypothesis; shorter ones are found less often.
        false: false hypotheses per fragment.
        apart: mean log-odds of true ones less that of false ones; both spread by 2.
        xy, angle: standard deviation of a true hypothesis about its seam, px and radians.
        closed: share of the gap that hypotheses overlook.
        matched: share of a true seam's samples that match.
    """

    found: float = 0.85
    false: float = 4.0
    apart: float = 5.0
    xy: float = 3.0
    angle: float = float(np.radians(2.0))
    closed: float = 0.5
    matched: float = 0.6


class Seam(NamedTuple):
    """Where two fragments touch: samples s of i and the nearest samples t of j, and the mean gap between them."""

    i: int
    j: int
    s: Ints
    t: Ints
    gap: float


class Planted(NamedTuple):
    """What a measurer would say, and which hypotheses are true."""

    hypotheses: PairHypotheses
    matches: Matches
    true: NDArray[np.bool_]


def seams(outlines: Outlines, poses: list[Pose], gap: float) -> list[Seam]:
    """All pairs of fragments that run along each other at less than `gap` px, for at least four samples."""
    from scipy.spatial import cKDTree

    owner = outlines.owner
    turn, shift = np.array([pose.angle for pose in poses]), np.array([pose.xy for pose in poses])
    xy = angles.act(turn[owner], outlines.xy) + shift[owner]
    normal = angles.act(turn[owner], outlines.normal)
    pairs = cKDTree(xy).query_pairs(gap, output_type="ndarray")
    pairs = pairs[owner[pairs[:, 0]] != owner[pairs[:, 1]]]
    pairs = pairs[np.einsum("kx,kx->k", normal[pairs[:, 0]], normal[pairs[:, 1]]) < -0.3]
    s, t = np.where((owner[pairs[:, 0]] < owner[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1]).T
    far = np.hypot(*(xy[s] - xy[t]).T)
    order = np.lexsort((far, s, owner[t], owner[s]))
    s, t, far = s[order], t[order], far[order]
    first = np.ones(len(s), dtype=bool)
    first[1:] = (s[1:] != s[:-1]) | (owner[t[1:]] != owner[t[:-1]])
    s, t, far = s[first], t[first], far[first]
    out = []
    for i, j in sorted(set(zip(owner[s].tolist(), owner[t].tolist(), strict=True))):
        here = (owner[s] == i) & (owner[t] == j)
        if here.sum() >= 4:
            out.append(Seam(i, j, s[here], t[here], float(np.median(far[here]))))
    return out


def plant(
    outlines: Outlines, poses: list[Pose], rng: np.random.Generator, quality: Quality | None = None, gap: float = 12.0
) -> Planted:
    """Hypotheses and matches as a measurer of this quality would give them.

    Args:
        poses: canvas_from_frag of every fragment.
        gap: px; wider ones are no seams.
    """
    quality = quality or Quality()
    found = seams(outlines, poses, gap)
    typical = float(np.median([len(seam.s) for seam in found])) if found else 1.0
    rows: list[_Row] = []
    true: list[bool] = []
    matches: list[tuple[Ints, Ints, Floats]] = []
    for seam in found:
        if rng.random() > quality.found * min(1.0, 1.6 * len(seam.s) / typical):
            continue
        rows.append(_true(outlines, poses, seam, quality, rng))
        true.append(True)
        keep = rng.random(len(seam.s)) < quality.matched
        jitter = rng.integers(-2, 3, int(keep.sum()))
        t = _step(outlines, seam.t[keep], jitter)
        matches.append((seam.s[keep], t, rng.beta(4, 3, int(keep.sum()))))
    apart = {(seam.i, seam.j) for seam in found}
    for _ in range(round(quality.false * outlines.n)):
        i, j = sorted(int(k) for k in rng.choice(outlines.n, 2, replace=False))
        if (i, j) in apart and rng.random() < 0.5:
            continue
        row, match = _false(outlines, i, j, max(4, round(typical * rng.uniform(0.4, 1.0))), quality, rng)
        rows.append(row)
        true.append(False)
        matches.append(match)
    return Planted(_hypotheses(outlines.n, rows), _matches(matches), np.array(true, dtype=bool))


class _Row(NamedTuple):
    i: int
    j: int
    pose: Pose
    log_odds: float
    information: Floats


def _true(outlines: Outlines, poses: list[Pose], seam: Seam, quality: Quality, rng: np.random.Generator) -> _Row:
    i_from_j = poses[seam.i].between(poses[seam.j])
    middle = outlines.xy[seam.s].mean(axis=0)
    outward = outlines.normal[seam.s].mean(axis=0)
    closed = -quality.closed * seam.gap * outward / max(float(np.hypot(*outward)), 0.3)
    turned = Pose(float(rng.normal(0, quality.angle)), (0.0, 0.0))
    off = rng.normal(0, quality.xy, 2) + closed
    about = Pose(0.0, tuple(middle + off)).compose(turned).compose(Pose(0.0, tuple(-middle)))
    log_odds = float(rng.normal(quality.apart / 2, 2.0))
    return _Row(seam.i, seam.j, about.compose(i_from_j), log_odds, _information(i_from_j, middle, quality))


def _false(
    outlines: Outlines, i: int, j: int, length: int, quality: Quality, rng: np.random.Generator
) -> tuple[_Row, tuple[Ints, Ints, Floats]]:
    """Of many random places where i and j might run along each other, the one that fits best."""
    best: tuple[float, Pose, Ints, Ints] | None = None
    for _ in range(30):
        s = _step(outlines, np.full(length, rng.integers(*outlines.start[[i, i + 1]])), np.arange(length))
        t = _step(outlines, np.full(length, rng.integers(*outlines.start[[j, j + 1]])), -np.arange(length))
        pose, error = _fit(outlines.xy[s], outlines.xy[t])
        if best is None or error < best[0]:
            best = error, pose, s, t
    assert best is not None
    _, pose, s, t = best
    row = _Row(
        i,
        j,
        pose,
        float(rng.normal(-quality.apart / 2, 2.0)),
        _information(pose, outlines.xy[s].mean(axis=0), quality),
    )
    keep = rng.random(length) < quality.matched * 0.7
    return row, (s[keep], t[keep], rng.beta(3, 4, int(keep.sum())))


def _fit(x: Floats, y: Floats) -> tuple[Pose, float]:
    """The rigid motion x_from_y of least squares, and its root mean square error."""
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    quarter = angles.act(angles.QUARTER, b)
    angle = float(np.arctan2((a * quarter).sum(), (a * b).sum()))
    error = a - angles.act(angle, b)
    xy = x.mean(axis=0) - angles.act(angle, y.mean(axis=0))
    return Pose(angle, (float(xy[0]), float(xy[1]))), float(np.sqrt((error**2).sum(axis=1).mean()))


def _information(i_from_j: Pose, middle: Floats, quality: Quality) -> Floats:
    """Inverse covariance of (x, y, angle) when the errors of position and angle are independent at `middle`."""
    lever = angles.act(angles.QUARTER, np.array(i_from_j.xy) - middle)
    back = np.eye(3)  # errors at the middle from errors at j's centre
    back[:2, 2] = -lever
    weight = np.diag([quality.xy**-2.0, quality.xy**-2.0, quality.angle**-2.0])
    return np.asarray(back.T @ weight @ back)


def _step(outlines: Outlines, s: Ints, by: Ints) -> Ints:
    """Samples further along the same outlines."""
    fragment = np.searchsorted(outlines.start, s, side="right") - 1
    first = outlines.start[fragment]
    return np.asarray(first + (s - first + by) % (outlines.start[fragment + 1] - first))


def _hypotheses(n: int, rows: list[_Row]) -> PairHypotheses:
    if not rows:
        return PairHypotheses.none(n)
    return PairHypotheses(
        n,
        np.array([row.i for row in rows]),
        np.array([row.j for row in rows]),
        np.array([row.pose.angle for row in rows]),
        np.array([row.pose.xy for row in rows]),
        np.array([row.log_odds for row in rows]),
        np.array([row.information for row in rows]),
    )


def _matches(parts: list[tuple[Ints, Ints, Floats]]) -> Matches:
    """All of them, each pair of samples once, the stronger one."""
    if not parts:
        return Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    s, t = (np.concatenate([part[k] for part in parts]).astype(np.int64) for k in (0, 1))
    strength = np.concatenate([part[2] for part in parts]).astype(np.float64)
    order = np.lexsort((-strength, np.maximum(s, t), np.minimum(s, t)))
    low, high = np.minimum(s, t)[order], np.maximum(s, t)[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    kept = order[first]
    return Matches(s[kept], t[kept], strength[kept])
