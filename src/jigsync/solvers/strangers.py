"""Fragments that do not belong: what touches them where they stand is worse than chance.

    support(i) = sum of the scores of all sides of i that touch something

Scores are log-odds, so a fragment that stands where it belongs has a support above 0 but for bad luck, and one that was
only put where there was a hole has not. A fragment is a stranger when its support is below STRANGE: unlikely though it
is that a given fragment is one, the evidence against its place is stronger. That holds where the rest of the picture is
known to be right; in a puzzle that is hard to measure many a true place looks bad, so most of the fragments have to
hang together first.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.energy import Ints, score_pairs, touching_sides
from jigsync.values.arrangement import Arrangement
from jigsync.values.sides import SideScores

STRANGE, STRANGE_IN_FULL = 1.0, -3.0
"""Nats."""
GOOD: Final = 4.0


def without_strangers(scores: SideScores, found: Arrangement, kept: NDArray[np.bool_], n: int) -> tuple[Ints, float]:
    """The slots after strangers are taken off, the worst first, and what their going is worth; n fragments are asked
    about.

    Shapes: kept (N,) fragments that stay in any case.
    """
    slots, left, gain = found.slots, found.slots.copy(), 0.0
    full = int((slots >= 0).sum()) == found.grid.size == n
    while True:
        s, t = touching_sides(Arrangement(found.layout, left, found.turns))
        value = score_pairs(scores, s, t)
        support = np.bincount(s // 4, value, len(left)) + np.bincount(t // 4, value, len(left))
        in_doubt = np.where((left >= 0) & ~kept, support, np.inf)
        worst = int(np.argmin(in_doubt))
        if in_doubt[worst] >= (STRANGE_IN_FULL if full else STRANGE):
            solid = len(value) > 0 and float(value.mean()) >= GOOD
            return (left, gain) if solid else (slots, 0.0)
        left[worst] = -1
        gain -= float(support[worst])
        full = False
