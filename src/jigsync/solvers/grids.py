"""Which grids a picture of n fragments may have: exact ones, ones with holes, and ones that leave fragments over.

Exact factorizations of n are always tried (`base.grids_to_try`). Fragments may be missing, and strangers may be among
them, so that others are tried beside them:

    | rows cols - n | <= max(FEW, SHARE n),      longer side <= SLENDER times the shorter one

Those next to the box of what hangs together (`parts`) come first, at most MOST of them: a wrong grid costs time.
"""

from __future__ import annotations

import math
from typing import Final

from jigsync.solvers.base import SolveRequest
from jigsync.solvers.cluster import Cluster
from jigsync.values.layout import Grid

FEW, SHARE = 3, 0.15
"""Fragments that may be missing, or too many."""
SLENDER: Final = 2.5
MOST: Final = 5
CLEAR: Final = 0.8
"""Share of its box, and of all fragments, that a cluster covers when it tells the grid."""


def spare(n: int) -> int:
    """Most holes, and most fragments left over, of a picture of n fragments."""
    return max(FEW, math.floor(SHARE * n))


def grids_of(request: SolveRequest, core: Cluster | None, both_ways: bool) -> list[Grid]:
    """The grids to try: the exact ones, and after them those with holes or fragments left over; OptionError when none
    holds all pins.

    Args:
        core: the largest cluster; None where nothing is known.
        both_ways: rows x cols and cols x rows are different answers.
    """
    n = len(request.belonging)
    exact = request.exact_grids(both_ways)
    if request.grid is not None or core is None or len(core.fragments) < 2:
        return exact or request.grids(both_ways)
    box = sorted(core.covered.shape)
    if exact and len(core.fragments) == n == box[0] * box[1]:
        return exact
    found: list[tuple[tuple[int, int, int], Grid]] = []
    for rows in range(1, math.isqrt(n + spare(n)) + 1):
        for cols in range(rows, (n + spare(n)) // rows + 1):
            over = rows * cols - n
            like_box = [rows, cols] == box and len(core.fragments) >= CLEAR * rows * cols
            if over == 0 or not (like_box or (over >= -spare(n) and cols <= SLENDER * rows)):
                continue
            order = abs(rows - box[0]) + abs(cols - box[1]), abs(over), cols - rows
            found.append((order, Grid(rows, cols)))
    found.sort(key=lambda pair: pair[0])
    inexact = []
    for _, grid in found[:MOST]:
        ways = {grid, grid.turned(1)} if request.gauge_fixed or both_ways else {grid}
        inexact += [way for way in sorted(ways) if request.holds_pins(way)]
    return exact + inexact or request.grids(both_ways)
