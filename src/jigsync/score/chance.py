"""What somebody reaches who looks at nothing: a random fragment in every cell, or anywhere, at a random angle.

With n fragments, T_E and T_S of the true neighbour pairs of a grid lying east and south, and 4 turns (1 where nothing
is turned):

    AA = 1 / n        PA = 1 / n!        rotation = 1 / turns        AA+rot = 1 / (turns n)
    SRA = (T_E^2 + T_S^2) / ((T_E + T_S) n (n - 1))
    right = largest = 1 / n, as some motion makes any one fragment right; perfect = 0 from two fragments on
    upright = 1 / 4 where fragments lie at quarter turns, 10 / 360 at any angle: of an answer that is otherwise right

SRA is that of answers in the true grid. A guess of poses has next to no contact right, whatever it claims.
"""

from __future__ import annotations

import math
from typing import Final

from jigsync.score.contacts import contacts_of_cells
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.truth import Truth

ANY_ANGLE: Final = 10 / 360


def chance(truth: Truth, upright: bool) -> dict[str, float]:
    """measure -> what a guess reaches; `upright`: the solver is told that nothing is turned."""
    n = len(truth.placement)
    quarters = all(placed.pose is not None and placed.pose.turns is not None for placed in truth.placement.values())
    stands = 1.0 if upright else 1 / z4.ORDER if quarters else ANY_ANGLE
    found = {
        "right": 1 / n,
        "perfect": float(n == 1),
        "contacts": 0.0,
        "claims": 0.0,
        "largest": 1 / n,
        "upright": stands,
    }
    if isinstance(truth.layout, Grid):
        turned = 1 if upright else z4.ORDER
        whole = 1 / math.factorial(n) if n < 100 else 0.0
        found |= {"PA": whole, "AA": 1 / n, "SRA": _sra(truth, n), "rotation": 1 / turned}
        found |= {"AA+rot": 1 / (turned * n), "PA+rot": whole / turned**n}
    return found


def _sra(truth: Truth, n: int) -> float:
    at = truth.placement
    pairs = contacts_of_cells(at)
    if not pairs:
        return 1 / n
    rows = [(at[one].cell or (0, 0))[0] == (at[other].cell or (0, 0))[0] for one, other in pairs]
    east = sum(rows)
    south = len(rows) - east
    return (east**2 + south**2) / ((east + south) * n * (n - 1))
