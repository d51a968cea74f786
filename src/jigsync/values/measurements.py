"""Measurements: all that a solver learns about the fragments, whatever measured them.

Of every ordered pair (i, j) the log-probabilities of its 192 relations, in one of three forms:

    log_p        (N, N, 192) float32                            small N
    side_log_p   (4N, 4N) float32, log p(side s touches side t)   nothing known beyond direct neighbours
    listing      sparse relations with a background              any N

and, optionally, what single fragments tell about their canvas turns and their cell.

Convention: relations are in i's presented frame (`vocabulary`); canvas turns and cells are those of the upright
picture. Reversing: p_ji[REVERSE] should equal p_ij; `symmetric` averages the two where a measurer does not care.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from jigsync.measure.reach import KNOTS
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import FormatError, OptionError
from jigsync.values.listing import MASS_SLACK, MIN_REST, OTHERS, UNIFORM, Listing
from jigsync.values.puzzle import Puzzle
from jigsync.values.sides import SideScores

DENSE_LIMIT: Final = 160
"""Most fragments for which an (N, N, 192) array is built: 20 MB at 160, 19 GB at 5000."""

SCORE_FLOOR: Final = -12.0
"""Default lowest side score: one side that looks impossible must not veto a placement."""

FEW, MANY = 1.5, 0.5
"""What the border counts against touching sides in a puzzle of up to 9 fragments and of very many, see `border_weight`.
Best4 AA+rot on validation pictures: 3 x 3, severe, 40 of them, `boundary`, at 0 / 1 / 1.5 / 2: 0.51, 0.82, 0.84, 0.84;
eroded, 90, `learned`, at 0 / 0.5 / 1 / 1.5: 0.50, 0.56, 0.59, 0.61. But eroded 5 x 5, 75, at 0.5 / 1 / 1.5: 0.39, 0.37,
0.35. The weight that tells true placements best from ones with two fragments swapped, eroded, is 1.6 +- 0.7 at 3 x 3,
0.4 +- 0.3 at 5 x 5 and 0.6 +- 0.3 at 10 x 10."""
LOWEST_BORDER: Final = -8.0
"""Least log-probability of a side to lie on the border."""


@dataclass(frozen=True, eq=False)
class UnaryCells:
    """Where single fragments seem to belong in the upright picture.

    Attributes:
        xy: (N, 2) mean ((col + 1/2) / cols, (row + 1/2) / rows), each in [0, 1].
        sigma: (N,) standard deviation per axis, in the same unit.
    """

    xy: NDArray[np.float64]
    sigma: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measurements:
    """Pair and single-fragment log-probabilities of N fragments; exactly one pair form is set.

    Attributes:
        ids: fragment ids; index i of every array is ids[i].
        log_p: (N, N, 192) float32, each pair's relations sum to 1; the diagonal is unused.
        side_log_p: (4N, 4N) float32, the 16 of a pair sum to at most 1; the diagonal blocks are unused.
        listing: sparse relations.
        unit_only: nothing is known beyond direct neighbours; the other 176 relations share the rest evenly.
        unary_turns: (N, 4) log-probabilities of canvas turns 0..3, or None.
        unary_cells: or None.
        border: (4N,) log-probability that a side lies on the picture's border and touches nothing, or None.
        reach: (4N, KNOTS) what is told of how far each side is from the border (`measure.reach`), or None.
        note: one sentence when the measurer could not do what it was asked to, for whoever asked.
    """

    ids: tuple[str, ...]
    log_p: NDArray[np.float32] | None = None
    side_log_p: NDArray[np.float32] | None = None
    listing: Listing | None = None
    unit_only: bool = False
    unary_turns: NDArray[np.float64] | None = None
    unary_cells: UnaryCells | None = None
    border: NDArray[np.float32] | None = None
    reach: NDArray[np.float32] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        n = len(self.ids)
        if len(set(self.ids)) != n:
            raise FormatError("The ids of measurements must be unique.")
        if sum(form is not None for form in (self.log_p, self.side_log_p, self.listing)) != 1:
            raise FormatError("Measurements take exactly one of log_p, side_log_p and listing.")
        _check("log_p", self.log_p, (n, n, v.RELATIONS))
        _check("side_log_p", self.side_log_p, (4 * n, 4 * n))
        _check("unary_turns", self.unary_turns, (n, z4.ORDER))
        _check("border", self.border, (4 * n,))
        _check("reach", self.reach, (4 * n, KNOTS))
        if self.unary_cells is not None:
            _check("unary_cells.xy", self.unary_cells.xy, (n, 2))
            _check("unary_cells.sigma", self.unary_cells.sigma, (n,))

    @classmethod
    def from_sides_log_p(
        cls,
        ids: tuple[str, ...],
        dense: NDArray[Any] | None = None,
        *,
        indptr: NDArray[Any] | None = None,
        indices: NDArray[Any] | None = None,
        values: NDArray[Any] | None = None,
        background: float = UNIFORM,
        unary_turns: NDArray[np.float64] | None = None,
        unary_cells: UnaryCells | None = None,
        border: NDArray[np.float32] | None = None,
    ) -> Measurements:
        """From log-probabilities of touching sides: log p(side s of i touches side t of j) for i != j.

        The 16 of an ordered pair sum to at most 1; the other 176 relations share what is left evenly.

        Args:
            dense: (4N, 4N); or
            indptr, indices, values: its listed entries as compressed sparse rows, (4N + 1,), (nnz,), (nnz,);
                entries between two sides of one fragment are dropped.
            background: log-probability of every pair of sides that the sparse form does not list.
        """
        n = len(ids)
        if dense is not None:
            matrix = np.asarray(dense, dtype=np.float32)
            made = cls(ids, None, matrix, None, True, unary_turns, unary_cells, border)
            most = float(np.max(made._side_mass[~np.eye(n, dtype=bool)], initial=0.0))
            if most > 1 + MASS_SLACK:
                raise FormatError(f"The 16 probabilities of touching sides of a pair sum to {most:.4f}: at most 1.")
            return made
        if indptr is None or indices is None or values is None:
            raise FormatError("Side log-probabilities need a dense matrix, or indptr, indices and values.")
        s = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        t = np.asarray(indices, dtype=np.int64)
        apart = s // z4.ORDER != t // z4.ORDER
        s, t, log_p = s[apart], t[apart], np.asarray(values)[apart]
        relation = v.UNIT_OF_SIDES[s % z4.ORDER, t % z4.ORDER]
        listing = Listing.of(n, s // z4.ORDER, t // z4.ORDER, relation, log_p, background)
        return cls(ids, None, None, listing, True, unary_turns, unary_cells, border)

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.ids)

    @cached_property
    def dense(self) -> NDArray[np.float32]:
        """(N, N, 192), built when first asked for; OptionError above DENSE_LIMIT fragments unless stored so."""
        if self.log_p is not None:
            return self.log_p
        if self.n > DENSE_LIMIT:
            raise OptionError(
                f"An (N, N, 192) array is only built for up to {DENSE_LIMIT} fragments; this puzzle has {self.n}."
            )
        i, j = (a.ravel() for a in np.indices((self.n, self.n)))
        out = np.full((self.n * self.n, v.RELATIONS), UNIFORM, dtype=np.float32)
        apart = i != j
        out[apart] = self.pair_log_p(i[apart], j[apart])
        return out.reshape(self.n, self.n, v.RELATIONS)

    def pair_log_p(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float32]:
        """All 192 log-probabilities of the given ordered pairs, i != j.

        Shapes: i, j (P,) -> (P, 192).
        """
        i, j = np.asarray(i, dtype=np.int64), np.asarray(j, dtype=np.int64)
        if self.log_p is not None:
            return np.asarray(self.log_p[i, j])
        if self.listing is not None:
            return self.listing.log_p_of(self.n, i, j)
        assert self.side_log_p is not None
        sides = np.arange(z4.ORDER)
        block = self.side_log_p[(4 * i)[:, None, None] + sides[:, None], (4 * j)[:, None, None] + sides]
        rest = np.maximum(1.0 - np.exp(block.astype(np.float64)).sum(axis=(1, 2)), MIN_REST)
        out = np.repeat(np.log(rest / OTHERS).astype(np.float32)[:, None], v.RELATIONS, axis=1)
        out[:, v.UNIT_OF_SIDES.ravel()] = block.reshape(len(i), -1)
        return out

    def symmetric(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float32]:
        """`pair_log_p` averaged with the reversed pair: log((p_ij + p_ji[REVERSE]) / 2).

        Shapes: i, j (P,) -> (P, 192).
        """
        p = np.exp(self.pair_log_p(i, j))
        p += np.exp(self.pair_log_p(j, i))[:, v.REVERSE]
        p /= 2
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(p, out=p))

    def known_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The unordered pairs i < j that a solver should look at: all, or those listed in either direction.

        Shapes: two (P,), ascending.
        """
        if self.listing is None:
            i, j = np.triu_indices(self.n, 1)
            return i.astype(np.int64), j.astype(np.int64)
        first, second, _, _ = self.listing.pairs()
        key = np.unique(np.minimum(first, second) * self.n + np.maximum(first, second))
        return key // self.n, key % self.n

    def select(self, members: NDArray[Any]) -> Measurements:
        """The measurements of some fragments, in the given order.

        Shapes: members (M,) indices.
        """
        members = np.asarray(members, dtype=np.int64)
        unary = self.unary_cells
        sides = (z4.ORDER * members[:, None] + np.arange(z4.ORDER)).ravel()
        return Measurements(
            tuple(self.ids[k] for k in members),
            log_p=None if self.log_p is None else self.log_p[np.ix_(members, members)],
            side_log_p=None if self.side_log_p is None else self.side_log_p[np.ix_(sides, sides)],
            listing=None if self.listing is None else self.listing.select(self.n, members),
            unit_only=self.unit_only,
            unary_turns=None if self.unary_turns is None else self.unary_turns[members],
            unary_cells=None if unary is None else UnaryCells(unary.xy[members], unary.sigma[members]),
            border=None if self.border is None else self.border[sides],
            reach=None if self.reach is None else self.reach[sides],
        )

    def sides(self, floor: float = SCORE_FLOOR) -> SideScores:
        """Side scores as `measure.sides` defines them, symmetrised with the reversed pair.

        score[s, t] = log p(s touches t) - log(mass of the 176 other relations / 176), no score below `floor`.
        Dense pair forms give dense scores, a listing gives sparse rows whose `floor` is an unlisted pair's score.
        """
        if self.listing is not None:
            return replace(self.listing.side_scores(self.n, floor), border=self._border_score())
        if self.log_p is not None:
            p = np.exp(self.log_p[:, :, v.UNIT_OF_SIDES]).transpose(0, 2, 1, 3).reshape(4 * self.n, 4 * self.n)
            others = np.exp(self.log_p[:, :, ~v.IS_UNIT].astype(np.float64)).sum(axis=2)
        else:
            assert self.side_log_p is not None
            p = np.exp(self.side_log_p)
            others = 1.0 - self._side_mass
        p = (p + p.T) / 2
        others = np.maximum((others + others.T) / 2, MIN_REST)
        base = np.log(others / OTHERS).astype(np.float32)
        with np.errstate(divide="ignore"):
            score = np.log(p) - _by_sides(base)
        np.maximum(score, np.float32(floor), out=score)
        score[_by_sides(np.eye(self.n, dtype=bool))] = 0.0
        return SideScores(self.n, dense=score.astype(np.float32, copy=False), border=self._border_score())

    def _border_score(self) -> NDArray[np.float32] | None:
        """How much more likely than any side a side lies on the border; see `border_odds`. Shapes: -> (4N,)."""
        return None if self.border is None else (border_weight(self.n) * border_odds(self.border)).astype(np.float32)

    @cached_property
    def _side_mass(self) -> NDArray[np.float64]:
        """(N, N): sum of the 16 probabilities of touching sides."""
        assert self.side_log_p is not None
        p = np.exp(self.side_log_p).reshape(self.n, 4, self.n, 4)
        return np.asarray(p.sum(axis=(1, 3), dtype=np.float64))


def border_weight(n: int) -> float:
    """MANY + (FEW - MANY) min(1, 9 / N)^2: with more fragments touching sides say more of who lies on the border."""
    return MANY + (FEW - MANY) * min(1.0, 9 / max(n, 1)) ** 2


def border_odds(log_p: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Log-odds of the border against the share of sides that lie there, x = logit p - c - logit q.

    A square grid of N fragments has q = 1 / sqrt(N) of its sides on the border. A measurer's p need not sum up to
    that (its calibration saw other puzzles), so c is what makes it: mean sigmoid(logit p - c) = q. Otherwise sides
    that are all a little too sure of the border would make every grid long.

    Shapes: (4N,) -> (4N,).
    """
    n = len(log_p) / z4.ORDER
    q = 1 / np.sqrt(max(n, 4.0))
    log_p = np.clip(log_p.astype(np.float64), LOWEST_BORDER, -MIN_REST)
    odds = log_p - np.log(-np.expm1(log_p))
    c = float(brentq(lambda shift: expit(odds - shift).mean() - q, odds.min() - 2, odds.max() + 20))
    return np.asarray(odds - c - np.log(q / (1 - q)))


class Measurer(Protocol):
    """Anything that turns fragments into measurements; it never sees the truth."""

    @property
    def name(self) -> str:
        """What `--measurer` calls it."""

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs (or, for large puzzles, the promising ones)."""


def _check(name: str, array: NDArray[Any] | None, shape: tuple[int, ...]) -> None:
    if array is None:
        return
    if array.shape != shape:
        raise FormatError(f"The '{name}' of measurements must have shape {shape}. Got {array.shape} instead.")
    if np.isnan(array).any():
        raise FormatError(f"The '{name}' of measurements must not hold NaN.")


def _by_sides(per_pair: NDArray[Any]) -> NDArray[Any]:
    """(N, N) -> (4N, 4N): each pair's value for its 16 pairs of sides."""
    return np.repeat(np.repeat(per_pair, 4, axis=0), 4, axis=1)
