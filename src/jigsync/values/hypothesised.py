"""Pair hypotheses as measurements: fragments of any shape at any angle, known by how their outlines fit.

A grid solver reads them through `steps`: those near a quarter turn and about a cell away are unit steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import FormatError
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.listing import MIN_REST
from jigsync.values.outlines import Matches, Outlines
from jigsync.values.sides import SideScores
from jigsync.values.steps import log_odds_of, sides_of_hypotheses

Ints = NDArray[np.int64]

UNLISTED: Final = -8.0
"""Log-odds of two sides of which no hypothesis speaks, unless the measurer says otherwise."""


@dataclass(frozen=True, eq=False)
class Hypothesised:
    """Hypotheses about pairs, and what they were read from.

    Attributes:
        found: the hypotheses, in pixels.
        size: sqrt(area) of the median fragment, px: about the pitch of a grid's cell.
        outlines: of all fragments, or None where the measurer read none.
        matches: pairs of samples of the outlines, or None.
        unlisted: log-odds of what is not listed.
    """

    found: PairHypotheses
    size: float
    outlines: Outlines | None = None
    matches: Matches | None = None
    unlisted: float = UNLISTED

    unit_only = True

    def __post_init__(self) -> None:
        if not self.size > 0:
            raise FormatError(f"The size of hypothesised fragments must be above 0. Got {self.size}.")
        if self.outlines is not None and self.outlines.n != self.found.n:
            raise FormatError(f"There are outlines of {self.outlines.n} fragments and hypotheses about {self.found.n}.")
        if self.matches is not None and self.outlines is None:
            raise FormatError("Matches need the outlines whose samples they name.")

    @property
    def n(self) -> int:
        """Number of fragments."""
        return self.found.n

    def log_p(self, i: Ints, j: Ints) -> NDArray[np.float32]:
        """See `Pairs`: the unit steps share p = sigmoid(log-odds), what is left goes to the other relations."""
        scores = self.sides(-np.inf).to_dense()
        sides = np.arange(z4.ORDER)
        block = scores[(4 * i)[:, None, None] + sides[:, None], (4 * j)[:, None, None] + sides].reshape(len(i), -1)
        odds = np.exp(np.minimum(log_odds_of(block.astype(np.float64)), 30.0))
        rest = np.maximum(1.0 / (1.0 + odds.sum(axis=1, keepdims=True)), MIN_REST)
        out = np.repeat(np.log(rest / v.OTHERS), v.RELATIONS, axis=1)
        with np.errstate(divide="ignore"):
            out[:, v.UNIT_OF_SIDES.ravel()] = np.log(odds * rest)
        return out.astype(np.float32)

    def known(self) -> tuple[Ints, Ints]:
        """The pairs of which there is a hypothesis."""
        low, high = np.minimum(self.found.i, self.found.j), np.maximum(self.found.i, self.found.j)
        key = np.unique(low * self.n + high)
        return key // self.n, key % self.n

    def sides(self, floor: float) -> SideScores:
        """See `Pairs`."""
        return sides_of_hypotheses(self.found, self.size, floor, self.unlisted)

    def hypotheses(self, cell: float) -> PairHypotheses:
        """The hypotheses themselves; they are in pixels whatever a cell is."""
        return self.found

    def select(self, members: Ints) -> Hypothesised:
        """See `Pairs`."""
        outlines = None if self.outlines is None else self.outlines.select(members)
        matches = None
        if self.matches is not None and self.outlines is not None:
            matches = self.matches.select(self.outlines, members)
        return Hypothesised(self.found.select(members), self.size, outlines, matches, self.unlisted)
