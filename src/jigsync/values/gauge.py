"""The gauge: the one global turn that no pairwise residual can see, k_i -> k_i + g, as a distribution over angles.

votes         sum_i log p_i(k_i + g),   p_i from what single fragments tell
by evidence   g* = argmax_g of the votes
by residual   g* = argmin_g min_x J_g(x): the paper's first row; its theorem says that all are equal
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles, z4
from jigsync.values.errors import FormatError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_LOG_P: Final = -12.0
"""No single fragment may speak louder against a turn."""

QUARTERS: Final = tuple(angles.of_turns(turns) for turns in range(z4.ORDER))
"""The four angles of a grid's gauge."""


@dataclass(frozen=True)
class Gauge:
    """How likely each further global turn of the reported frame is to make it upright.

    Attributes:
        angles: K angles in radians; the first is 0, "as reported".
        probabilities: K, they sum to 1. Without evidence all are alike: the gauge is undetermined.
        turns: turns of the first fragment of the puzzle in the reported frame, where the layout is a grid.
        clear: does the picture have a clear up? Otherwise no frame is likely enough to be relied on, or nobody asked.
    """

    angles: tuple[float, ...] = QUARTERS
    probabilities: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25)
    turns: int | None = 0
    clear: bool = False

    def __post_init__(self) -> None:
        if not self.angles or len(self.angles) != len(self.probabilities):
            raise FormatError(f"A gauge has {len(self.angles)} angles and {len(self.probabilities)} probabilities.")

    @classmethod
    def of_turns(cls, turns: int, probabilities: Sequence[float], clear: bool = False) -> Gauge:
        """The gauge of a grid: four quarter turns."""
        return cls(QUARTERS, tuple(float(p) for p in probabilities), turns, clear)

    @property
    def confidence(self) -> float:
        """Probability that the reported frame is the upright one."""
        return self.probabilities[0]

    @property
    def determined(self) -> bool:
        """Does the evidence prefer the reported frame to every other?"""
        return self.probabilities[0] > max(self.probabilities[1:], default=0.0) + 1e-9

    def turned(self, turns: int) -> Gauge:
        """The gauge after a further global turn: what was `turns` away is now "as reported"."""
        first = None if self.turns is None else z4.compose(turns, self.turns)
        if self.angles == QUARTERS:
            return Gauge(QUARTERS, tuple(np.roll(self.probabilities, -turns).tolist()), first, self.clear)
        left = [angles.wrap(angle - angles.of_turns(turns)) for angle in self.angles]
        order = sorted(range(len(left)), key=lambda k: abs(left[k]))
        if not math.isclose(left[order[0]], 0.0, abs_tol=1e-9):
            return Gauge((0.0, *left), (0.0, *self.probabilities), first, self.clear)
        ordered = tuple(left[k] for k in order), tuple(self.probabilities[k] for k in order)
        return Gauge(*ordered, first, self.clear)


def votes(turns: Ints, unary_turns: NDArray[np.floating] | None) -> Floats:
    """(4,) sum_i log p_i(k_i + g) of each global turn g; 0 when single fragments tell nothing.

    Args: turns (M,) in an arbitrary gauge; unary_turns (M, 4) log-probabilities of canvas turns, or None.
    """
    if unary_turns is None:
        return np.zeros(z4.ORDER)
    log_p = np.maximum(np.asarray(unary_turns, dtype=np.float64), MIN_LOG_P)
    rows = np.arange(len(turns))
    return np.array([log_p[rows, (turns + g) % z4.ORDER].sum() for g in range(z4.ORDER)])


def probabilities(log_odds: Floats, possible: Sequence[bool] | None = None) -> Floats:
    """(K,) probability of each global turn; `possible` says which there are at all, at least one; None: all."""
    total = log_odds if possible is None else np.where(possible, log_odds, -np.inf)
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
    return Gauge.of_turns(int(turns[0]) if len(turns) else 0, np.roll(p, -applied).tolist())
