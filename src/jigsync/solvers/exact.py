"""Branch and bound: the placement of least energy, with proof (engine/src/exact.c has the bound).

While the global turn is free, one fragment's turns are held: to 0 in a square grid, where every assembly can be
turned until that fragment stands so, and to 0 or 1 in an oblong one, which only maps to itself by half a turn. (A
surplus fragment that is not placed holds nothing, which costs time but not the proof.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.native import branch_and_bound
from jigsync.solvers.base import Assignment, Budget, Pins, SolveRequest, over_grids
from jigsync.solvers.energy import energy_of
from jigsync.solvers.table import SideTable
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid

MOST_ITEMS = 16
LOWEST = -1e4  # scores below are as good as forbidden; the bound needs finite numbers


@dataclass(frozen=True)
class Exact:
    """The proven optimum."""

    name: ClassVar[str] = "exact"
    summary: ClassVar[str] = "Branch and bound: the placement of least energy, proven."
    assumes: ClassVar[str] = (
        f"At most {MOST_ITEMS} fragments and slots; up to 9 it takes well under a second, beyond 12 give a time limit."
        " Takes pins, holes, surplus fragments and unknown grids."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """The best placement over all grids; `proven` unless it was stopped."""
        table, budget = SideTable.of(request), Budget(request)
        dense = np.maximum(table.scores.to_dense(), np.float32(LOWEST)) if table.n <= MOST_ITEMS else None

        def attempt(grid: Grid, pins: Pins, to_beat: float) -> Arrangement | None:
            if dense is None or grid.size > MOST_ITEMS:
                raise OptionError(
                    f"The solver 'exact' takes at most {MOST_ITEMS} fragments and slots."
                    f" Got {table.n} fragments for a {grid} grid."
                )
            most = [0.0]

            def go_on(nodes: int, score: float) -> bool:
                most[0] = 1 - (1 - most[0]) * 0.98  # nobody knows how many nodes there will be
                return budget.go_on("branch", most[0], energy_of(score))

            allowed = allowed_turns(table.n, grid, pins, request.upright)
            return branch_and_bound(dense, grid, allowed, energy_of(to_beat), go_on, table.scores.border).best

        return over_grids(request, budget, table.scores, attempt, proof="Proven: no placement has a lower energy.")


def allowed_turns(n: int, grid: Grid, pins: Pins, upright: bool) -> NDArray[np.uint8]:
    """Which turns each fragment may have in each slot: bit k for turns k.

    Shapes: (N, slots).
    """
    out = np.full((n, grid.size), 0b0001 if upright else 0b1111, dtype=np.uint8)
    for fragment, (slot, turns) in pins.items():
        out[fragment] = 0
        out[:, slot] = 0
        out[fragment, slot] = 1 << turns
    if not (upright or pins):
        out[0] = 0b0001 if grid.rows == grid.cols else 0b0011
    return out
