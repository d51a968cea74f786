"""Measurements: all that a solver learns about the fragments, whatever measured them.

How pairs relate, in one of the forms of `pairs`, and what single fragments tell: of their canvas turns, of their cell,
of the picture's border.

Convention: relations are in i's presented frame (`vocabulary`); canvas turns and cells are those of the upright
picture. Reversing: p_ji[REVERSE] should equal p_ij; `symmetric` averages the two where a measurer does not care.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.border import KNOTS, border_odds, border_weight
from jigsync.values.cell_frames import CellFrames
from jigsync.values.errors import FormatError, OptionError
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.listing import UNIFORM, Listing
from jigsync.values.pairs import Pairs, Relations, TouchingSides, checked
from jigsync.values.puzzle import Puzzle
from jigsync.values.sides import SideScores

DENSE_LIMIT: Final = 160
"""Most fragments for which an (N, N, 192) array is built: 20 MB at 160, 19 GB at 5000."""

SCORE_FLOOR: Final = -12.0
"""Default lowest side score: one side that looks impossible must not veto a placement."""


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
    """What is known of N fragments.

    Attributes:
        ids: fragment ids; index i of every array is ids[i].
        pairs: how pairs relate, in one of the forms of `pairs`.
        unary_turns: (N, 4) log-probabilities of canvas turns 0..3, or None.
        unary_cells: or None.
        border: (4N,) log-probability that a side lies on the picture's border and touches nothing, or None.
        reach: (4N, KNOTS) what is told of how far each side is from the border (`values.border`), or None.
        cell: pitch of a cell in pixels, where whoever measured knows or estimates it, or None.
        frames: where each fragment's cell lies in its picture, where that is not its middle, or None.
        note: one sentence when the measurer could not do what it was asked to, for whoever asked.
    """

    ids: tuple[str, ...]
    pairs: Pairs
    unary_turns: NDArray[np.float64] | None = None
    unary_cells: UnaryCells | None = None
    border: NDArray[np.float32] | None = None
    reach: NDArray[np.float32] | None = None
    cell: float | None = None
    frames: CellFrames | None = None
    note: str = ""

    def __post_init__(self) -> None:
        n = len(self.ids)
        if len(set(self.ids)) != n:
            raise FormatError("The ids of measurements must be unique.")
        if self.pairs.n != n:
            raise FormatError(f"Measurements of {n} fragments got pairs of {self.pairs.n}.")
        checked("unary_turns", self.unary_turns, (n, z4.ORDER))
        checked("border", self.border, (4 * n,))
        checked("reach", self.reach, (4 * n, KNOTS))
        if self.unary_cells is not None:
            checked("unary_cells.xy", self.unary_cells.xy, (n, 2))
            checked("unary_cells.sigma", self.unary_cells.sigma, (n,))

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
        pairs: Pairs
        if dense is not None:
            pairs = TouchingSides(np.asarray(dense, dtype=np.float32))
        elif indptr is None or indices is None or values is None:
            raise FormatError("Side log-probabilities need a dense matrix, or indptr, indices and values.")
        else:
            s = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            t = np.asarray(indices, dtype=np.int64)
            apart = s // z4.ORDER != t // z4.ORDER
            s, t, log_p = s[apart], t[apart], np.asarray(values)[apart]
            relation = v.UNIT_OF_SIDES[s % z4.ORDER, t % z4.ORDER]
            ends = s // z4.ORDER, t // z4.ORDER
            pairs = Listing.of(len(ids), *ends, relation, log_p, background, unit_only=True)
        return cls(ids, pairs, unary_turns, unary_cells, border)

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.ids)

    @property
    def unit_only(self) -> bool:
        """Is nothing known beyond direct neighbours?"""
        return self.pairs.unit_only

    @cached_property
    def dense(self) -> NDArray[np.float32]:
        """(N, N, 192), built when first asked for; OptionError above DENSE_LIMIT fragments unless stored so."""
        if isinstance(self.pairs, Relations):
            return self.pairs.dense
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
        return self.pairs.log_p(np.asarray(i, dtype=np.int64), np.asarray(j, dtype=np.int64))

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
        return self.pairs.known()

    def select(self, members: NDArray[Any]) -> Measurements:
        """The measurements of some fragments, in the given order.

        Shapes: members (M,) indices.
        """
        members = np.asarray(members, dtype=np.int64)
        unary = self.unary_cells
        sides = (z4.ORDER * members[:, None] + np.arange(z4.ORDER)).ravel()
        return Measurements(
            tuple(self.ids[k] for k in members),
            self.pairs.select(members),
            unary_turns=None if self.unary_turns is None else self.unary_turns[members],
            unary_cells=None if unary is None else UnaryCells(unary.xy[members], unary.sigma[members]),
            border=None if self.border is None else self.border[sides],
            reach=None if self.reach is None else self.reach[sides],
            cell=self.cell,
            frames=None if self.frames is None else self.frames.select(members),
        )

    def sides(self, floor: float = SCORE_FLOOR) -> SideScores:
        """Side scores as `values.sides` defines them, symmetrised with the reversed pair.

        score[s, t] = log p(s touches t) - log(mass of the 176 other relations / 176), no score below `floor`.
        Dense pair forms give dense scores, a listing gives sparse rows whose `floor` is an unlisted pair's score.
        """
        return replace(self.pairs.sides(floor), border=self._border_score())

    def hypotheses(self) -> PairHypotheses:
        """Pair hypotheses: in pixels, or in cells where nobody knows how large a cell is."""
        return self.pairs.hypotheses(self.cell or 1.0)

    def _border_score(self) -> NDArray[np.float32] | None:
        """How much more likely than any side a side lies on the border; see `border_odds`. Shapes: -> (4N,)."""
        return None if self.border is None else (border_weight(self.n) * border_odds(self.border)).astype(np.float32)


class Measurer(Protocol):
    """Anything that turns fragments into measurements; it never sees the truth."""

    @property
    def name(self) -> str:
        """What `--measurer` calls it."""

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs (or, for large puzzles, the promising ones)."""
