"""How far apart neighbours' outlines are: one number per puzzle, from its surest poses.

Worn edges leave a gap. Where a seam bends, outlines that stand half a gap out along their normals fit each other best
at the true gap; a straight seam fits at any. With a(g) = a + g/2 n_a and b(g) = b + g/2 n_b of the matches m of a pose,

    badness(g) = sum over poses of min over (R, x) of sum_m w_m |a_m(g) - R b_m(g) - x|^2

is least at about the true gap. The weights are those of the poses without a gap.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jigsync.measure.contour_poses import TOLERANCE, Complex, Paired, PairPoses, fitted, weighed
from jigsync.values import angles
from jigsync.values.outlines import Floats, Outlines

LADDER: Final = 13
WIDEST: Final = 12.0
"""Steps: a third of a fragment's size."""
SUREST: Final = 2.0
"""Poses per fragment that are asked."""
LOOSE: Final = 1.5
"""Tolerances: a wide gap bends what fits."""


def estimate_gap(found: Paired, poses: PairPoses, outlines: Outlines) -> float:
    """The gap in px, 0 where nothing tells."""
    step = outlines.step
    surest = poses.keep(np.argsort(-poses.worth, kind="stable")[: int(SUREST * outlines.n)])
    if not len(surest):
        return 0.0
    pair = np.searchsorted(found.i * outlines.n + found.j, surest.i * outlines.n + surest.j)
    normal, plain = angles.plane(outlines.normal), angles.plane(outlines.xy)
    which, at = found.of_pairs(pair)
    s, t = found.s[at], found.t[at]
    strength = found.strength[at]
    w = weighed(surest.phase, surest.xy, which, strength, plain[s], plain[t], normal[s], normal[t], LOOSE * TOLERANCE * step)

    def badness(gap: float) -> float:
        a, b = plain[s] + gap / 2 * normal[s], plain[t] + gap / 2 * normal[t]
        phase, xy = fitted(surest.phase, which, w, a, b)
        away: Complex = a - phase[which] * b - xy[which]
        return float(np.sum(w * (away.real**2 + away.imag**2)))

    ladder = np.linspace(0, WIDEST * step, LADDER)
    return _lowest(ladder, np.array([badness(gap) for gap in ladder]))


def _lowest(x: Floats, y: Floats) -> float:
    """Where a parabola through the lowest value and its neighbours is lowest; the first or last place if it is there."""
    k = int(y.argmin())
    if not 0 < k < len(x) - 1:
        return float(x[k])
    bend = y[k - 1] - 2 * y[k] + y[k + 1]
    return float(x[k] + 0.5 * (y[k - 1] - y[k + 1]) / bend * (x[1] - x[0])) if bend > 0 else float(x[k])
