"""Every placement there is, looked at: the yardstick of the branch and bound.

Known turns: all m! arrangements of m = max(fragments, slots) items, holes among them (9! = 362 880 at 3 x 3).
Unknown turns: all m! 4^slots; the scores of one arrangement over all turns are a broadcast sum of one 4 x 4 table a
touching pair, so 2 x 3 (6! 4^6 = 2.9 million placements) takes a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.base import Assignment, Budget, Pins, SolveRequest, over_grids
from jigsync.solvers.energy import Ints, border_scores, energy_of
from jigsync.solvers.table import SideTable
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid

MOST_UPRIGHT = 9
MOST_TURNED = 6
_CHUNK = 1 << 21  # scores held at once


@dataclass(frozen=True)
class Exhaustive:
    """All placements, one after the other."""

    name: ClassVar[str] = "exhaustive"
    summary: ClassVar[str] = "Tries every placement; the yardstick of 'exact'."
    assumes: ClassVar[str] = (
        f"At most {MOST_UPRIGHT} fragments and slots when upright, {MOST_TURNED} with unknown turns."
        " Takes pins, holes and surplus fragments."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """The placement of least energy over all grids; proven unless it was stopped."""
        table, budget = SideTable.of(request), Budget(request)
        dense, border = table.scores.to_dense(), border_scores(table.scores)

        def attempt(grid: Grid, pins: Pins, to_beat: float) -> Arrangement:
            items, most = max(table.n, grid.size), MOST_UPRIGHT if request.upright else MOST_TURNED
            if items > most:
                raise OptionError(
                    f"The solver 'exhaustive' takes at most {most} fragments and slots"
                    f" {'when upright' if request.upright else 'with unknown turns'}."
                    f" Got {table.n} fragments for a {grid} grid: use 'exact'."
                )
            return best_of_all(dense, border, grid, pins, request.upright, budget)

        return over_grids(request, budget, table.scores, attempt, proof="Every placement was tried.")


def best_of_all(
    dense: NDArray[np.float32], border: NDArray[np.float32], grid: Grid, pins: Pins, upright: bool, budget: Budget
) -> Arrangement:
    """The placement with the largest sum of scores.

    Shapes: dense (4N, 4N), border (4N,).
    """
    n, slots = dense.shape[0] // 4, grid.size
    items = max(n, slots)
    padded = np.zeros((items, 4, items, 4))  # the items after the fragments are holes and score 0
    padded[:n, :, :n] = dense.reshape(n, 4, n, 4)
    rim = np.zeros((items, 4))
    rim[:n] = border.reshape(n, 4)
    orders = permutations(items)[:, :slots]
    for fragment, (slot, _) in pins.items():
        orders = orders[orders[:, slot] == fragment]
    fixed = dict.fromkeys(range(slots), 0) if upright else dict(pins.values())
    choices = [np.array([fixed[slot]]) if slot in fixed else np.arange(4) for slot in range(slots)]
    shape = tuple(len(turns) for turns in choices)
    step = max(1, _CHUNK // int(np.prod(shape)))

    best_score, best_order, best_turns = -np.inf, orders[0], np.zeros(slots, np.int64)
    for start in range(0, len(orders), step):
        if start and not budget.go_on("enumerate", start / len(orders), energy_of(best_score)):
            break
        part = orders[start : start + step]
        total = np.zeros((len(part), *shape))
        for p, q, bearing in _touching_slots(grid):
            sides_p = (bearing - choices[p]) % 4
            sides_q = (bearing + 2 - choices[q]) % 4
            pair = padded[part[:, p, None, None], sides_p[:, None], part[:, q, None, None], sides_q]
            axes = [len(part)] + [1] * slots
            axes[p + 1], axes[q + 1] = pair.shape[1:]
            total += pair.reshape(axes)  # p < q, so the axes stand in order
        for p, bearing in np.argwhere(grid.neighbour_slots() < 0):
            alone = rim[part[:, p, None], (bearing - choices[p]) % 4]
            total += alone.reshape([len(part)] + [len(choices[p]) if slot == p else 1 for slot in range(slots)])
        at = np.unravel_index(int(np.argmax(total)), total.shape)
        if total[at] > best_score:
            best_score, best_order = float(total[at]), part[at[0]]
            best_turns = np.array([turns[k] for turns, k in zip(choices, at[1:], strict=True)])
    found_slots, found_turns = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    real = best_order < n
    found_slots[best_order[real]] = np.flatnonzero(real)
    found_turns[best_order[real]] = best_turns[real]
    return Arrangement(grid, found_slots, found_turns)


def permutations(m: int) -> Ints:
    """All m! orders of 0..m-1, lexicographic.

    Shapes: (m!, m).
    """
    if m == 0:
        return np.zeros((1, 0), dtype=np.int64)
    rest = permutations(m - 1)
    blocks = [np.column_stack([np.full(len(rest), first), rest + (rest >= first)]) for first in range(m)]
    return np.concatenate(blocks)


def _touching_slots(grid: Grid) -> list[tuple[int, int, int]]:
    """(slot, the slot to its east or south, bearing) of every touching pair."""
    neighbours = grid.neighbour_slots()
    return [
        (slot, int(neighbours[slot, bearing]), bearing)
        for slot in range(grid.size)
        for bearing in (z4.E, z4.S)
        if neighbours[slot, bearing] >= 0
    ]
