"""Forms of pair measurements: what is known of every ordered pair (i, j) of N fragments.

    Relations       (N, N, 192) log-probabilities of all relations                                   small N
    TouchingSides   (4N, 4N) log p(side s touches side t); nothing beyond direct neighbours          any N that fits
    Listing         sparse relations with a background (`listing`)                                   any N
    Hypothesised    poses without cells or quarter turns (`hypothesised`)                            any N

Each answers the same questions, so that every solver takes every form: all 192 relations of a pair, scores of touching
sides, and pair hypotheses. Relations are in i's presented frame (`vocabulary`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import FormatError
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.listing import MASS_SLACK, MIN_REST
from jigsync.values.sides import SideScores
from jigsync.values.steps import hypotheses_of_relations, hypotheses_of_sides

Ints = NDArray[np.int64]


class Pairs(Protocol):
    """Anything that knows how pairs of N fragments relate."""

    @property
    def n(self) -> int:
        """Number of fragments."""

    @property
    def unit_only(self) -> bool:
        """Is nothing known beyond direct neighbours? The other 176 relations then share the rest evenly."""

    def log_p(self, i: Ints, j: Ints) -> NDArray[np.float32]:
        """All 192 log-probabilities of ordered pairs, i != j. Shapes: (P,), (P,) -> (P, 192)."""

    def known(self) -> tuple[Ints, Ints]:
        """The unordered pairs i < j that a solver should look at, ascending. Shapes: two (P,)."""

    def sides(self, floor: float) -> SideScores:
        """Side scores, symmetrised, no score below `floor`, without the border."""

    def hypotheses(self, cell: float) -> PairHypotheses:
        """Pair hypotheses; `cell` is the pitch of a cell in pixels, 1 for poses in cells."""

    def select(self, members: Ints) -> Pairs:
        """Of some fragments, in the given order."""


@dataclass(frozen=True, eq=False)
class Relations:
    """All relations of all pairs.

    Attributes:
        dense: (N, N, 192) float32 log-probabilities, each pair's sum to 1; the diagonal is unused.
    """

    dense: NDArray[np.float32]

    unit_only = False

    def __post_init__(self) -> None:
        checked("log_p", self.dense, (self.n, self.n, v.RELATIONS))

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.dense)

    def log_p(self, i: Ints, j: Ints) -> NDArray[np.float32]:
        """See `Pairs`."""
        return np.asarray(self.dense[i, j])

    def known(self) -> tuple[Ints, Ints]:
        """All pairs."""
        return every_pair(self.n)

    def sides(self, floor: float) -> SideScores:
        """See `Pairs`."""
        size = z4.ORDER * self.n
        p = np.exp(self.dense[:, :, v.UNIT_OF_SIDES]).transpose(0, 2, 1, 3).reshape(size, size)
        others = np.exp(self.dense[:, :, ~v.IS_UNIT].astype(np.float64)).sum(axis=2)
        return _dense_scores(p, others, floor)

    def hypotheses(self, cell: float) -> PairHypotheses:
        """The likeliest relations of every pair: exact steps and bearings."""
        i, j = self.known()
        p = np.exp(self.dense[i, j])
        p += np.exp(self.dense[j, i])[:, v.REVERSE]
        return hypotheses_of_relations(self.n, i, j, p / 2, cell)

    def select(self, members: Ints) -> Relations:
        """See `Pairs`."""
        return Relations(self.dense[np.ix_(members, members)])


@dataclass(frozen=True, eq=False)
class TouchingSides:
    """Which sides touch, and nothing beyond.

    Attributes:
        side_log_p: (4N, 4N) float32, the 16 of a pair sum to at most 1; the diagonal blocks are unused.
    """

    side_log_p: NDArray[np.float32]

    unit_only = True

    def __post_init__(self) -> None:
        size = z4.ORDER * self.n
        checked("side_log_p", self.side_log_p, (size, size))
        most = float(np.max(self._mass[~np.eye(self.n, dtype=bool)], initial=0.0))
        if most > 1 + MASS_SLACK:
            raise FormatError(f"The 16 probabilities of touching sides of a pair sum to {most:.4f}: at most 1.")

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.side_log_p) // z4.ORDER

    def log_p(self, i: Ints, j: Ints) -> NDArray[np.float32]:
        """See `Pairs`."""
        sides = np.arange(z4.ORDER)
        block = self.side_log_p[(4 * i)[:, None, None] + sides[:, None], (4 * j)[:, None, None] + sides]
        rest = np.maximum(1.0 - np.exp(block.astype(np.float64)).sum(axis=(1, 2)), MIN_REST)
        out = np.repeat(np.log(rest / v.OTHERS).astype(np.float32)[:, None], v.RELATIONS, axis=1)
        out[:, v.UNIT_OF_SIDES.ravel()] = block.reshape(len(i), -1)
        return out

    def known(self) -> tuple[Ints, Ints]:
        """All pairs."""
        return every_pair(self.n)

    def sides(self, floor: float) -> SideScores:
        """See `Pairs`."""
        return _dense_scores(np.exp(self.side_log_p), 1.0 - self._mass, floor)

    def hypotheses(self, cell: float) -> PairHypotheses:
        """Unit steps."""
        return hypotheses_of_sides(self.sides(-np.inf), cell)

    def select(self, members: Ints) -> TouchingSides:
        """See `Pairs`."""
        sides = (z4.ORDER * members[:, None] + np.arange(z4.ORDER)).ravel()
        return TouchingSides(self.side_log_p[np.ix_(sides, sides)])

    @cached_property
    def _mass(self) -> NDArray[np.float64]:
        """(N, N): sum of the 16 probabilities of touching sides."""
        p = np.exp(self.side_log_p).reshape(self.n, z4.ORDER, self.n, z4.ORDER)
        return np.asarray(p.sum(axis=(1, 3), dtype=np.float64))


def every_pair(n: int) -> tuple[Ints, Ints]:
    """All pairs i < j, ascending."""
    i, j = np.triu_indices(n, 1)
    return i.astype(np.int64), j.astype(np.int64)


def checked(name: str, array: NDArray[Any] | None, shape: tuple[int, ...]) -> None:
    """FormatError unless the array is absent, or of this shape and without NaN."""
    if array is None:
        return
    if array.shape != shape:
        raise FormatError(f"The '{name}' of measurements must have shape {shape}. Got {array.shape} instead.")
    if np.isnan(array).any():
        raise FormatError(f"The '{name}' of measurements must not hold NaN.")


def _dense_scores(p: NDArray[Any], others: NDArray[np.float64], floor: float) -> SideScores:
    """score[s, t] = log p(s touches t) - log(mass of the 176 other relations / 176), both averaged with the reversed.

    Shapes: p (4N, 4N), others (N, N).
    """
    n = len(others)
    p = (p + p.T) / 2
    others = np.maximum((others + others.T) / 2, MIN_REST)
    base = np.log(others / v.OTHERS).astype(np.float32)
    with np.errstate(divide="ignore"):
        score = np.log(p) - _by_sides(base)
    np.maximum(score, np.float32(floor), out=score)
    score[_by_sides(np.eye(n, dtype=bool))] = 0.0
    return SideScores(n, dense=score.astype(np.float32, copy=False))


def _by_sides(per_pair: NDArray[Any]) -> NDArray[Any]:
    """(N, N) -> (4N, 4N): each pair's value for its 16 pairs of sides."""
    return np.repeat(np.repeat(per_pair, z4.ORDER, axis=0), z4.ORDER, axis=1)
