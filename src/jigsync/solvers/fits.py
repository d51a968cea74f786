"""Where a fragment may go beside those that are placed: the pair hypotheses of it, as poses on the canvas.

    canvas_from_j = canvas_from_i o i_from_j     for every hypothesis of (i, j) with i placed

Hypotheses that put it at the same place support each other: their log-odds are added. What one fragment says of
another is listed once, from whichever side.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.placement import Placement
from jigsync.values.pose import Pose

SAME: Final = (0.2, np.radians(10.0))
"""Usual fragments and radians within which two poses are the same place."""


class Fit(NamedTuple):
    """A place for a fragment: its pose, the log-odds of it, and the placed fragments that speak for it."""

    pose: Pose
    log_odds: float
    beside: tuple[str, ...]


def fits_for(
    found: PairHypotheses, ids: tuple[str, ...], placement: Placement, name: str, size: float, limit: int
) -> list[Fit]:
    """The likeliest places of a fragment, best first.

    Args:
        found: hypotheses in the unit of the placement's poses.
        size: of a usual fragment, in that unit.
    """
    j = ids.index(name)
    both = found.joined(found.reversed())
    listed = both.keep(both.j == j)
    fits: list[Fit] = []
    for k in np.argsort(-listed.log_odds, kind="stable").tolist():
        other = ids[int(listed.i[k])]
        canvas_from_i = placement[other].pose
        if canvas_from_i is None:
            continue
        pose = canvas_from_i.compose(listed.pose(k))
        odds = float(listed.log_odds[k])
        for at, fit in enumerate(fits):
            if _same(fit.pose, pose, size):
                if other not in fit.beside:
                    fits[at] = Fit(fit.pose, fit.log_odds + max(odds, 0.0), (*fit.beside, other))
                break
        else:
            fits.append(Fit(pose, odds, (other,)))
    return sorted(fits, key=lambda fit: -fit.log_odds)[:limit]


def _same(one: Pose, other: Pose, size: float) -> bool:
    off = np.hypot(one.xy[0] - other.xy[0], one.xy[1] - other.xy[1])
    return bool(off <= SAME[0] * size and abs(angles.wrap(one.angle - other.angle)) <= SAME[1])
