"""The learned measurer: the trained networks' score as one more cost beside those along the contour.

    cost = exp(-S(s, t))    so that the calibration's features, which are of log cost, are linear in S

S is what the boundary matcher says of two sides and, of more than FEW fragments that were squares, what their likeness
adds. Of those the reach head also tells how far their sides are from the picture's border.

The calibration weighs it against the training-free costs, so that it counts for as much as it deserves. What a cost is
worth depends on how worn the fragments are: shape tells nothing about eroded squares and nearly all about broken
ones. So the weights are linear in the puzzle's wear, w = W (1, gap, roughness), which is the same as fitting the
products of features and wear (`worn_features`), still one convex problem.

The network's own idea of "no neighbour", n_s, becomes two more features of single sides: n_s - max_t S(s, t) and
n_s - median_t S(s, t).

Without onnxruntime, or with shipped weights that do not load, the training-free `boundary` measures instead, and the
measurements say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure import boundary
from jigsync.measure.boundary import Boundary, make_costs, regime_of
from jigsync.measure.calibration import Calibration, shipped
from jigsync.measure.contour import Contours, read_contours
from jigsync.measure.costs import Cost, Matrix
from jigsync.measure.likeness import LikenessModel, load_likeness
from jigsync.measure.likeness import weights_sha256 as likeness_sha256
from jigsync.measure.matcher import Codes, MatcherModel, load_matcher, weights_sha256
from jigsync.measure.probabilities import BLOCK, calibrated, own_sides
from jigsync.measure.reach import load_reach
from jigsync.measure.reach import weights_sha256 as reach_sha256
from jigsync.measure.strips import prepared, read_strips
from jigsync.values import z4
from jigsync.values.errors import JigsyncError
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle

COST: Final = "matcher"
MEASURERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "learned": {
        "flush": boundary.MEASURERS["boundary"]["flush"],
        "gapped": (*boundary.MEASURERS["boundary"]["gapped"], "plane", COST),
        "damaged": (*boundary.MEASURERS["boundary"]["damaged"], COST),
    },
    "matcher": {"flush": boundary.MEASURERS["boundary"]["flush"], "gapped": (COST,), "damaged": (COST,)},
}
"""Measurer -> regime -> its costs. Squares that fill their cells need no network: pixels across the seam agree."""
FEW: Final = 9
"""Up to so many fragments the likeness is not asked: it would add a third to the time of a solve."""
BULGE: Final = 0.03
"""Cells that one contour in twenty may lie beyond its cell's side before fragments count as bulging. Likeness helps
where shape says nothing: of eight validation puzzles, 10 x 10, severe, it took the share of true neighbours from 0.994
to 0.978."""
MOST_REACHED: Final = 400
"""Up to so many fragments the reach head is asked, whose attention takes memory like 16 N^2, and sides are read at two
sizes, which takes twice the memory of their codes."""
SIZES: Final = (1.0, 0.97)
"""Sizes of the cell, as shares of what it is, at which the matcher reads many squares: two looks say more than one
(docs/training.md has the figures)."""
MANY: Final = 50
"""More fragments than this are looked at twice: of fewer the networks take more of a solve's time than the search."""
LIMIT: Final = 80.0
"""Largest |S|: float32 holds its exponential."""


class Matched:
    """The matcher's cost, and its features of single sides."""

    noise = 0.0

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._memo: tuple[slice, Matrix] | None = None
        sides = len(codes.none)
        most, median = np.empty((2, sides), dtype=np.float32)
        for start in range(0, sides, BLOCK):
            block = slice(start, min(start + BLOCK, sides))
            logits = self._logits(block).copy()
            logits[own_sides(block)] = -np.inf
            middle = (sides + z4.ORDER) // 2
            most[block], median[block] = logits.max(axis=1), np.partition(logits, middle, axis=1)[:, middle]
        none = self._codes.none
        self.own: Matrix = np.stack([none - most, none - median], axis=1)

    def _logits(self, block: slice) -> Matrix:
        """S of a block of sides against all; the last block is remembered. Shapes: B sides -> (B, 4N)."""
        if self._memo is None or self._memo[0] != block:
            self._memo = block, self._codes.logits(block)
        return self._memo[1]

    def rows(self, block: slice) -> Matrix:
        """exp(-S). Shapes: B sides -> (B, 4N)."""
        return np.asarray(np.exp(-np.clip(self._logits(block), -LIMIT, LIMIT)))


@dataclass(frozen=True, eq=False)
class Models:
    """The networks that read sides."""

    matcher: MatcherModel
    likeness: LikenessModel

    @classmethod
    def load(cls, matcher: Path | None = None, likeness: Path | None = None) -> Models:
        """Those of files, or the shipped ones; JigsyncError as `load_matcher` says."""
        return cls(load_matcher(matcher), load_likeness(likeness))

    @staticmethod
    def sha256(matcher: Path | None = None, likeness: Path | None = None) -> str:
        """sha256 of their files, joined by a plus sign; "" for one that is not there."""
        return f"{weights_sha256(matcher)}+{likeness_sha256(likeness)}"

    def encode(self, puzzle: Puzzle, contours: Contours) -> Codes:
        """What those that are asked say of all sides."""
        if len(puzzle) <= FEW or bulging(contours):
            return self._read(puzzle, contours.cell)
        return self.encode_alike(puzzle, contours.cell)

    def encode_alike(self, puzzle: Puzzle, cell: float) -> Codes:
        """What both say of all sides, for the cell pitch in pixels."""
        sizes = SIZES if MANY < len(puzzle) <= MOST_REACHED else SIZES[:1]
        return self._read(puzzle, *(cell * size for size in sizes)).beside(*self.likeness.encode(puzzle, cell))

    def _read(self, puzzle: Puzzle, *cells: float) -> Codes:
        return self.matcher.encode_both_ways(*(prepared(read_strips(puzzle, cell)) for cell in cells))


def learned_costs(names: Sequence[str], contours: Contours, codes: Codes) -> tuple[list[Cost], Matrix]:
    """The named costs, the matcher's among them, and the features of single sides.

    Shapes: -> costs, own (4N, 5), the matcher's two last.
    """
    plain = make_costs(contours, [name for name in names if name != COST])
    matched = Matched(codes)
    at = list(names).index(COST)
    return [*plain[:at], matched, *plain[at:]], np.concatenate([contours.own_features, matched.own], axis=1)


def bulging(contours: Contours) -> bool:
    """Do fragments reach out of their cells? Then they were broken along curves, and their shape says what fits.

    Squares lose of their cells, and the estimate of the cell is good to a few hundredths.
    """
    offset = contours.offset[contours.valid]
    return bool(len(offset)) and float(np.quantile(offset, 0.95)) > BULGE


def wear(contours: Contours) -> NDArray[np.float32]:
    """(1, gap, roughness): the usual gap between two neighbours and the usual deviation of a contour from its mean.

    Shapes: -> (3,), the latter two in tenths of a cell.
    """
    offset = np.where(contours.valid, contours.offset, np.nan)[contours.valid.any(axis=1)]
    if not len(offset):
        return np.array([1, 0, 0], dtype=np.float32)
    gap, rough = -2 * np.nanmedian(offset), np.median(np.nanstd(offset, axis=1))
    return np.array([1, 10 * gap, 10 * rough], dtype=np.float32)


def worn_features(feature: NDArray[np.float32], worn: NDArray[np.float32]) -> NDArray[np.float32]:
    """Products of features and wear. Shapes: (..., F), (3,) -> (..., 3 F), F of them times 1, then times gap, ..."""
    product = worn[:, None] * feature[..., None, :]
    return np.asarray(product.reshape(*feature.shape[:-1], -1), dtype=np.float32)


def worn_names(names: Sequence[str]) -> tuple[str, ...]:
    """What the calibration calls the costs of `worn_features`."""
    return tuple(f"{name}{times}" for times in ("", "*gap", "*roughness") for name in names)


def at_wear(calibration: Calibration, names: Sequence[str], worn: NDArray[np.float32]) -> Calibration:
    """The calibration of one puzzle: weights of products, summed up for its wear."""
    weights, none = (
        worn.astype(np.float64) @ part.reshape(len(worn), -1) for part in (calibration.weights, calibration.none)
    )
    return Calibration(tuple(names), weights, none)


@dataclass(frozen=True)
class Learned:
    """The learned measurer.

    Attributes:
        name: one of MEASURERS.
        weights: another file of the matcher than the shipped one.
        calibration: fitted weights; None takes the shipped ones of the puzzle's regime.
        likeness: another file of the likeness head than the shipped one.
        reach: another file of the reach head than the shipped one.
    """

    name: str = "learned"
    weights: Path | None = None
    calibration: Calibration | None = None
    likeness: Path | None = None
    reach: Path | None = None

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs of sides; sparse for large puzzles."""
        contours = read_contours(puzzle)
        regime = regime_of(contours)
        names = MEASURERS[self.name][regime]
        if COST not in names or len(puzzle) < 2:
            return Boundary().measure(puzzle)
        try:
            models, reach = Models.load(self.weights, self.likeness), load_reach(self.reach)
        except JigsyncError as error:
            if self.weights is not None or self.likeness is not None or self.reach is not None:
                raise
            note = f"The learned measurer is not used: {error}"
            return replace(Boundary().measure(puzzle), note=note)
        calibration = self.calibration or shipped(self.name, regime, worn_names(names))
        codes = models.encode(puzzle, contours)
        costs, own = learned_costs(names, contours, codes)
        found = calibrated(puzzle, costs, at_wear(calibration, names, wear(contours)), own)
        found = replace(found, cell=contours.cell)
        if codes.looks is None or len(puzzle) > MOST_REACHED:
            return found
        scores = codes.logits(slice(0, len(codes.none)))
        return replace(found, reach=reach.phi(codes.looks, scores, codes.none))

    @property
    def weights_sha256(self) -> str:
        """sha256 of the files of weights, joined by a plus sign; "" for one that is not there."""
        return f"{Models.sha256(self.weights, self.likeness)}+{reach_sha256(self.reach)}"
