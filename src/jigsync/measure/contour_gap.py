"""How far apart neighbours' outlines are: one number per puzzle, from its surest poses.

Worn edges leave a gap. Where a seam bends, outlines that stand half a gap out along their normals fit each other best
at the true gap; a straight seam fits at any. All poses and the gap g are fitted together, along the normals only:

    min sum_m w_m (n_m . (a_m(g) - R b_m(g) - x))^2,   a(g) = a + g/2 n_a,  b(g) = b + g/2 n_b,  n ~ n_a - R n_b

by Gauss-Newton, where every pose is eliminated (Schur complement) and one equation in g is left. How far matches are
off along the seam does not enter. Normals are those of SMOOTH samples: noise in them looks like a seam that bends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jigsync.measure.contour_poses import TOLERANCE, Complex, Paired, PairPoses, weighed
from jigsync.measure.outline_features import neighbours
from jigsync.values import angles
from jigsync.values.outlines import Floats, Outlines

SUREST: Final = 2.0
"""Poses per fragment that are asked."""
SMOOTH: Final = 1
"""Samples on either side whose normals are averaged."""
ROUNDS: Final = 6
LOOSE: Final = 2.0, 1.2
"""Tolerances in the first and the last round: without the gap nothing fits well."""
ALONG: Final = 0.05
"""Weight of the residual along the seam; some is needed for a straight one not to slide away."""
SHRUNK: Final = 1.2
"""True gaps over fitted ones: noise in normals is taken for bends. On validation tears 0.033 and 0.065 of the size were
found where 0.04 and 0.08 had been taken off."""
NOTHING: Final = 0.5
"""Steps: where nothing was taken off, up to 0.012 of the size was found, 0.45 of a step."""
WIDEST: Final = 12.0
"""Steps: a third of a fragment's size."""


def estimate_gap(found: Paired, poses: PairPoses, outlines: Outlines) -> float:
    """The gap in px, 0 where nothing tells."""
    step = outlines.step
    surest = poses.keep(np.argsort(-poses.worth, kind="stable")[: int(SUREST * outlines.n)])
    if not len(surest):
        return 0.0
    pair = np.searchsorted(found.i * outlines.n + found.j, surest.i * outlines.n + surest.j)
    around = neighbours(outlines.start, tuple(range(-SMOOTH, SMOOTH + 1)))
    normal = angles.plane(outlines.normal[around].sum(axis=1))
    normal /= np.maximum(np.abs(normal), 1e-9)
    plain = angles.plane(outlines.xy)
    which, at = found.of_pairs(pair)
    s, t, strength = found.s[at], found.t[at], found.strength[at]
    out_a, out_b = normal[s], normal[t]
    phase, xy, gap = surest.phase, surest.xy, 0.0
    for k in range(ROUNDS):
        a, b = plain[s] + gap / 2 * out_a, plain[t] + gap / 2 * out_b
        tolerance = TOLERANCE * step * (LOOSE[0] + (LOOSE[1] - LOOSE[0]) * k / (ROUNDS - 1))
        w = weighed(phase, xy, which, strength, a, b, out_a, out_b, tolerance)
        arm = phase[which] * b
        across = out_a - phase[which] * out_b
        across /= np.maximum(np.abs(across), 1e-9)
        opening = _dot(across, out_a - phase[which] * out_b) / 2
        away = a - arm - xy[which]
        poses_normal, with_gap, with_rest = (np.zeros((len(surest), 3, *more)) for more in ((3,), (), ()))
        of_gap, of_rest = np.zeros(len(surest)), np.zeros(len(surest))
        for direction, share, opens in ((across, 1.0, opening), (1j * across, ALONG, np.zeros(len(w)))):
            row = np.stack([direction.real, direction.imag, _dot(direction, 1j * arm)], axis=1)
            rest = _dot(direction, away)
            np.add.at(poses_normal, which, (share * w)[:, None, None] * row[:, :, None] * row[:, None, :])
            np.add.at(with_gap, which, (share * w * opens)[:, None] * row)
            np.add.at(with_rest, which, (share * w * rest)[:, None] * row)
            np.add.at(of_gap, which, share * w * opens**2)
            np.add.at(of_rest, which, share * w * opens * rest)
        poses_normal += np.diag([1e-6, 1e-6, 1e-3 * step**2])
        solved = np.linalg.solve(poses_normal, np.stack([with_gap, with_rest], axis=2))
        curvature = float((of_gap - np.einsum("hk,hk->h", with_gap, solved[:, :, 0])).sum())
        slope = float((of_rest - np.einsum("hk,hk->h", with_gap, solved[:, :, 1])).sum())
        if not curvature > 0:
            return 0.0
        change = float(np.clip(gap - slope / curvature, 0.0, WIDEST * step)) - gap
        gap += change
        moved = solved[:, :, 1] + change * solved[:, :, 0]
        xy = xy + moved[:, 0] + 1j * moved[:, 1]
        phase = phase * np.exp(1j * np.clip(moved[:, 2], -0.3, 0.3))
    return SHRUNK * gap if gap > NOTHING * step else 0.0


def _dot(a: Complex, b: Complex) -> Floats:
    return np.asarray((a * b.conj()).real)
