"""Listed relations: the sparse form of pair measurements, for puzzles too large for an (N, N, 192) array.

An ordered pair has a probability for some relations only. Of the others,

    a unit-step relation has  min(exp(background), even share of what is left),
    the rest of the mass is shared evenly by the relations that are neither listed nor unit steps.

So a pair of which nothing is listed, with the default background 1/192, is a pair of which nothing is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import vocabulary as v
from jigsync.values.errors import FormatError
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.sides import SideScores
from jigsync.values.steps import hypotheses_of_relations, hypotheses_of_sides

UNIFORM: Final = -math.log(v.RELATIONS)
"""log(1/192): what a relation of an unknown pair has."""

MIN_REST: Final = 1e-6
"""The least mass left for what is not listed: float32 logarithms do not resolve less, and no measurer is surer."""

MASS_SLACK: Final = 1e-3
"""How far above 1 a pair's probabilities may sum before they are refused."""


def _sides_of_unit() -> NDArray[np.int64]:
    table = np.full((v.RELATIONS, 2), -1, dtype=np.int64)
    for a, b in np.ndindex(v.UNIT_OF_SIDES.shape):
        table[v.UNIT_OF_SIDES[a, b]] = a, b
    return table


SIDES_OF_UNIT: Final = _sides_of_unit()
"""(192, 2): the touching sides (a of i, b of j) of a unit-step relation, -1 for the others."""


@dataclass(frozen=True, eq=False)
class Listing:
    """Sparse relations, sorted by (i, j, relation), each ordered pair's relations at most once.

    Shapes: i, j (M,) int32; relation (M,) int16; listed (M,) float32 log-probabilities. `background` is one
    log-probability. `unit_only`: nothing is known beyond direct neighbours.
    """

    n: int
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    relation: NDArray[np.int16]
    listed: NDArray[np.float32]
    background: float = UNIFORM
    unit_only: bool = False

    @classmethod
    def of(
        cls,
        n: int,
        i: NDArray[Any],
        j: NDArray[Any],
        relation: NDArray[Any],
        log_p: NDArray[Any],
        background: float = UNIFORM,
        unit_only: bool = False,
    ) -> Listing:
        """Sorts and checks; FormatError names what is wrong."""
        i, j, relation = (np.asarray(a, dtype=np.int64) for a in (i, j, relation))
        log_p = np.asarray(log_p, dtype=np.float32)
        if not (i.shape == j.shape == relation.shape == log_p.shape) or i.ndim != 1:
            raise FormatError(f"Listed relations need four arrays of one length. Got {i.shape}, {j.shape}, ...")
        if len(i) and (min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= n or np.any(i == j)):
            raise FormatError(f"Listed pairs must be two different fragments of 0..{n - 1}.")
        if len(i) and (relation.min() < 0 or relation.max() >= v.RELATIONS):
            raise FormatError(f"Listed relations must be in 0..{v.RELATIONS - 1}.")
        key = (i * n + j) * v.RELATIONS + relation
        order = np.argsort(key, kind="stable")
        if np.any(np.diff(key[order]) == 0):
            raise FormatError("A relation of an ordered pair is listed twice.")
        if np.isnan(log_p).any() or not np.isfinite(background):
            raise FormatError("Listed log-probabilities must not be NaN, and the background must be finite.")
        listing = cls(
            n,
            i[order].astype(np.int32),
            j[order].astype(np.int32),
            relation[order].astype(np.int16),
            log_p[order],
            float(background),
            unit_only,
        )
        _, _, mass, _ = listing.pairs()
        if len(mass) and mass.max() > 1 + MASS_SLACK:
            raise FormatError(f"The listed probabilities of a pair sum to {mass.max():.4f}: at most 1 is allowed.")
        return listing

    def __len__(self) -> int:
        return len(self.i)

    def select(self, members: NDArray[np.int64]) -> Listing:
        """The listing of some fragments, renumbered in the given order."""
        new = np.full(self.n, -1, dtype=np.int64)
        new[members] = np.arange(len(members))
        keep = (new[self.i] >= 0) & (new[self.j] >= 0)
        i, j, relation, log_p = (a[keep] for a in (self.i, self.j, self.relation, self.listed))
        return Listing.of(len(members), new[i], new[j], relation, log_p, self.background, self.unit_only)

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """The ordered pairs of which something is listed, ascending.

        Shapes: i, j (P,), listed mass (P,), pair number of each entry (M,).
        """
        new = np.ones(len(self.i), dtype=bool)
        new[1:] = (np.diff(self.i) != 0) | (np.diff(self.j) != 0)
        number = np.cumsum(new) - 1
        p = np.exp(self.listed.astype(np.float64))
        mass = np.asarray(np.bincount(number, weights=p, minlength=int(new.sum())), dtype=np.float64)
        return self.i[new].astype(np.int64), self.j[new].astype(np.int64), mass, number

    def unlisted(
        self, mass: NDArray[np.float64], units: NDArray[np.int64], others: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probability of one unlisted unit step and of one unlisted other relation, by the rule above.

        Args: mass that is listed, numbers of listed unit steps and of listed other relations. Shapes: (P,) each.
        """
        rest = np.maximum(1.0 - mass, MIN_REST)
        open_units = v.UNIT_RELATIONS - units
        open_others = v.OTHERS - others
        even = rest / np.maximum(open_units + open_others, 1)
        unit = np.minimum(math.exp(self.background), even)
        other = (rest - unit * open_units) / np.maximum(open_others, 1)
        return unit, other

    def summary(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Per listed pair: p of one unlisted unit step, of one unlisted other relation, mass of all non-unit relations.

        Shapes: (P,) each, in the order of `pairs`.
        """
        first, _, mass, number = self.pairs()
        is_unit = v.IS_UNIT[self.relation]
        units = np.bincount(number[is_unit], minlength=len(first))
        others = np.bincount(number[~is_unit], minlength=len(first))
        unit, other = self.unlisted(mass, units, others)
        p = np.exp(self.listed.astype(np.float64))
        listed_others = np.bincount(number[~is_unit], weights=p[~is_unit], minlength=len(first))
        return unit, other, listed_others + other * (v.OTHERS - others)

    def unknown(self) -> tuple[float, float]:
        """Probability of one unit step and of one other relation of a pair of which nothing is listed."""
        none = np.zeros(1, dtype=np.int64)
        unit, other = self.unlisted(np.zeros(1), none, none)
        return float(unit[0]), float(other[0])

    def known(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The unordered pairs i < j that are listed in either direction, ascending."""
        first, second, _, _ = self.pairs()
        key = _distinct(np.minimum(first, second) * self.n + np.maximum(first, second))
        return key // self.n, key % self.n

    def log_p(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float32]:
        """All 192 log-probabilities of given ordered pairs.

        Shapes: i, j (P,) -> (P, 192).
        """
        _, _, _, number = self.pairs()
        at, p_unit, p_other, _ = self._of_pairs(np.asarray(i, dtype=np.int64) * self.n + j)
        log_unit, log_other = (np.log(p).astype(np.float32)[:, None] for p in (p_unit, p_other))
        out = np.where(v.IS_UNIT, log_unit, log_other)
        count = np.where(at < 0, 0, np.bincount(number, minlength=1)[at])
        start = np.searchsorted(number, at)
        row = np.repeat(np.arange(len(at)), count)
        entry = np.arange(len(row)) + np.repeat(start - (np.cumsum(count) - count), count)
        out[row, self.relation[entry]] = self.listed[entry]
        return out

    def hypotheses(self, cell: float) -> PairHypotheses:
        """The likeliest listed relations of every pair."""
        if self.unit_only:
            return hypotheses_of_sides(self.sides(-np.inf), cell)
        i, j = self.known()
        p = (np.exp(self.log_p(i, j)) + np.exp(self.log_p(j, i))[:, v.REVERSE]) / 2
        return hypotheses_of_relations(self.n, i, j, p, cell)

    def sides(self, floor: float) -> SideScores:
        """Sparse side scores of every listed unit step, symmetrised: see `Measurements.sides`."""
        n, unit = self.n, v.IS_UNIT[self.relation]
        ends = SIDES_OF_UNIT[self.relation[unit]]
        width = 4 * n
        s, t = 4 * self.i[unit].astype(np.int64) + ends[:, 0], 4 * self.j[unit].astype(np.int64) + ends[:, 1]
        listed = s * width + t
        order = np.argsort(listed)
        listed, p_listed = listed[order], np.exp(self.listed[unit].astype(np.float64))[order]
        keys = _distinct(np.concatenate([listed, t * width + s]))
        s, t = keys // width, keys % width

        def one_way(a: NDArray[np.int64], b: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            """p(a touches b), listed or not, and the mass of the pair's non-unit relations."""
            _, p, _, others = self._of_pairs((a // 4) * n + b // 4)
            at = _find(listed, a * width + b)
            return np.where(at < 0, p, p_listed[at]) if len(listed) else p, others

        (p_forth, rest_forth), (p_back, rest_back) = one_way(s, t), one_way(t, s)
        base = np.maximum(rest_forth + rest_back, MIN_REST) / v.OTHERS
        with np.errstate(divide="ignore"):
            score = np.maximum(np.log((p_forth + p_back) / base), floor).astype(np.float32)
        indptr = np.searchsorted(s, np.arange(width + 1)).astype(np.int64)
        blank_unit, blank_other = self.unknown()
        unlisted = max(floor, math.log(blank_unit / blank_other))
        return SideScores(n, None, indptr, t.astype(np.int32), score, unlisted)

    def _of_pairs(
        self, wanted: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Of pairs i * n + j: number of the listed pair (-1: none), and what `summary` says of it.

        Shapes: (P,) -> four (P,).
        """
        first, second, _, _ = self.pairs()
        at = _find(first * self.n + second, wanted)
        blank_unit, blank_other = self.unknown()
        columns = zip(self.summary(), (blank_unit, blank_other, blank_other * v.OTHERS), strict=True)
        unit, other, others = (np.append(known, blank)[at] for known, blank in columns)
        return at, unit, other, others


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every number once, ascending: `np.unique`, whose hash table takes twenty times as long on a million of them."""
    ascending = np.sort(numbers)
    first = np.ones(len(ascending), dtype=bool)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first]


def _find(known: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each wanted number stands in the ascending `known`; -1 when it does not."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.asarray(np.where(known[at] == wanted, at, -1), dtype=np.int64)
