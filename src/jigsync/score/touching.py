"""Which sides touch in a placement: what is measured, and what a solution keeps, whatever the gauge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.placement import Placement
from jigsync.values.sides import side_at


def touching(placement: Placement, ids: Sequence[str]) -> NDArray[np.int64]:
    """The side that touches each side, -1 where nothing does.

    Shapes: -> (4N,), sides numbered in the order of `ids`.
    """
    at = {placed.cell: (i, placed.turns) for i, name in enumerate(ids) if (placed := placement[name]).cell is not None}
    out = np.full(z4.ORDER * len(ids), -1, dtype=np.int64)
    for cell, (i, turns) in at.items():
        assert cell is not None
        for bearing in range(z4.ORDER):
            d_row, d_col = z4.bearing_offset(bearing)
            other = at.get((cell[0] + d_row, cell[1] + d_col))
            if other is not None:
                out[side_at(i, turns, bearing)] = side_at(*other, z4.turn_bearing(bearing, 2))
    return out


def neighbour_accuracy(solution: Placement, truth: Placement, ids: Sequence[str]) -> float:
    """Share of truly touching sides that touch in the solution: position and turn at once, the same in every gauge.

    The literature's "neighbour comparison" for unknown orientation. 1 for a puzzle without touching sides.
    """
    true = touching(truth, ids)
    inner = true >= 0
    return float(np.mean(touching(solution, ids)[inner] == true[inner])) if inner.any() else 1.0
