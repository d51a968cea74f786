"""Which fragments could stand in a cell, given what stands around it.

    score(i, k) = sum over the cell's placed neighbours j != i of score[side_at(i, k, b), side_at(j, k_j, b + 2)]
                + sum over the bearings b that lead out of the grid of border[side_at(i, k, b)]
    p(i, k)     = exp score(i, k) / sum over all fragments and turns of the same

where b is the bearing from the cell to j. A cell within the grid that has no neighbour tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jigsync.solvers.energy import border_scores, score_pairs
from jigsync.values import z4
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.placement import Placed
from jigsync.values.sides import side_at


class Candidate(NamedTuple):
    """A fragment with turns for a cell; `score` is log-odds against not belonging there, `probability` its share."""

    id: str
    turns: int
    score: float
    probability: float


def candidates_for(
    measurements: Measurements, grid: Grid, placement: Mapping[str, Placed], cell: tuple[int, int], limit: int
) -> list[Candidate]:
    """The likeliest fragments for a cell, best first, each with its best turns; and what stands there, as it stands."""
    if not grid.contains(*cell):
        raise OptionError(f"The cell {cell} must lie in the {grid} grid.")
    index = {name: k for k, name in enumerate(measurements.ids)}
    at = {placed.cell: (index[name], placed.turns) for name, placed in placement.items() if placed.cell is not None}
    n, scores = measurements.n, measurements.sides()
    total = np.zeros((n, z4.ORDER))
    i, k = (part.ravel() for part in np.indices((n, z4.ORDER)))
    for bearing in range(z4.ORDER):
        d_row, d_col = z4.bearing_offset(bearing)
        ours = z4.ORDER * i + (bearing - k) % z4.ORDER
        if not grid.contains(cell[0] + d_row, cell[1] + d_col):
            total += border_scores(scores)[ours].reshape(n, z4.ORDER)
            continue
        neighbour = at.get((cell[0] + d_row, cell[1] + d_col))
        if neighbour is None:
            continue
        j, turns = neighbour
        theirs = np.full_like(ours, side_at(j, turns, bearing + 2))
        found = score_pairs(scores, ours, theirs).reshape(n, z4.ORDER)
        found[j] = 0.0  # a fragment cannot be its own neighbour: moving it leaves its cell empty
        total += found
    p = np.exp(total - total.max())
    p /= p.sum()
    best = total.argmax(axis=1)
    order = np.argsort(-total[np.arange(n), best], kind="stable")[:limit]
    listed = [(int(f), int(best[f])) for f in order]
    if (standing := at.get(cell)) is not None and standing not in listed:
        listed.append(standing)
    return [Candidate(measurements.ids[f], k, float(total[f, k]), float(p[f, k])) for f, k in listed]
