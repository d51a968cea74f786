"""The global turn g that no pairwise residual can see, k_i -> k_i + g: fixed by evidence, or by the vacuous rule.

by evidence   g* = argmax_g sum_i log p_i(k_i + g),   p_i from what single fragments tell
by residual   g* = argmin_g min_x J_g(x): the paper's first row; its theorem says all four are equal
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.sync.graph import Floats, Ints
from jigsync.values import z4
from jigsync.values.placement import Gauge

MIN_LOG_P: Final = -12.0
"""No single fragment may speak louder against a turn."""


def votes(turns: Ints, unary_turns: NDArray[np.floating] | None) -> Floats:
    """(4,) sum_i log p_i(k_i + g) of each global turn g; 0 when single fragments tell nothing.

    Args: turns (M,) in an arbitrary gauge; unary_turns (M, 4) log-probabilities of canvas turns, or None.
    """
    if unary_turns is None:
        return np.zeros(z4.ORDER)
    log_p = np.maximum(np.asarray(unary_turns, dtype=np.float64), MIN_LOG_P)
    rows = np.arange(len(turns))
    return np.array([log_p[rows, (turns + g) % z4.ORDER].sum() for g in range(z4.ORDER)])


def probabilities(log_odds: Floats, possible: Sequence[bool] = (True,) * z4.ORDER) -> Floats:
    """(4,) probability of each global turn; `possible` says which there are at all, at least one."""
    total = np.where(possible, log_odds, -np.inf)
    p = np.exp(total - total.max())
    return np.asarray(p / p.sum())


def evidence(turns: Ints, unary_turns: NDArray[np.floating] | None) -> Floats:
    """(4,) probability of each global turn g, the fragments' evidence taken as independent."""
    return probabilities(votes(turns, unary_turns))


def fix_by_evidence(p: Floats) -> int:
    """The likeliest global turn; of equals the lowest, so that "undetermined" leaves things as they are."""
    return int(np.argmax(p))


def fix_by_residual(residuals: Floats) -> int:
    """The global turn of the least residual: floating-point rounding decides (Corollary 1 of the paper)."""
    return int(np.argmin(residuals))


def reported(turns: Ints, p: Floats, applied: int) -> Gauge:
    """The gauge after `applied` was added: probabilities of further turns, index 0 is "as reported"."""
    p = np.roll(p, -applied)
    first = int(turns[0]) if len(turns) else 0
    return Gauge(first, (float(p[0]), float(p[1]), float(p[2]), float(p[3])))
