"""Training-free measurers: costs along the contour, calibrated to probabilities of touching sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync import z4
from jigsync.measure.calibration import Calibration, RowStats, features, log_softmax_rows, row_stats, shipped
from jigsync.measure.contour import Contours, read_contours
from jigsync.measure.costs import Cost, Gradients, SeamBand
from jigsync.measure.measurements import Measurements
from jigsync.measure.worn import NAMES as WORN
from jigsync.measure.worn import Worn
from jigsync.puzzle import Puzzle

DENSE_FRAGMENTS: Final = 700
"""Up to here all 16 N^2 pairs of sides are kept (31 MB at 700); beyond, the best `TOP` of every side."""
TOP: Final = 48
BLOCK: Final = 512
FLUSH_PIXELS: Final = 0.75
EPSILON: Final = 1e-6
"""Added to a cost before its logarithm is taken: two blank sides agree perfectly, and mean nothing."""
MAX_MASS: Final = 0.98
"""The 16 ways two fragments can touch never take more than this of the pair's probability."""

REGIMES: Final = ("flush", "gapped", "damaged")
"""Squares that fill their cells; straight squares with a rim cut off; anything else."""
MEASURERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "boundary": {
        "flush": ("mgc", "rim", "seam"),
        "gapped": ("mgc", "rim", "seam", "edge", "texture"),
        "damaged": ("mgc", "rim", "seam", "fit", "edge", "texture"),
    },
    "mgc": dict.fromkeys(REGIMES, ("mgc",)),
    "seam": dict.fromkeys(REGIMES, ("seam",)),
    "silhouette": dict.fromkeys(REGIMES, ("fit",)),
}
"""Measurer -> regime -> its costs. Squares have no shape to read, and on flush ones rows need no robustness."""


def make_costs(contours: Contours, names: Sequence[str]) -> list[Cost]:
    """The named costs of a puzzle's sides."""
    made: dict[str, Cost] = {}
    if not set(names).isdisjoint(WORN):
        made.update(Worn(contours).costs())
    if "mgc" in names:
        made["mgc"] = Gradients(contours)
    if "seam" in names:
        made["seam"] = SeamBand(contours)
    if "rim" in names:
        made["rim"] = SeamBand(contours, 2)
    return [made[name] for name in names]


def regime_of(contours: Contours) -> str:
    """Which of REGIMES applies: read off the fragments, not told."""
    if not contours.straight:
        return "damaged"
    return "flush" if contours.widest_gap < FLUSH_PIXELS else "gapped"


@dataclass(frozen=True)
class Boundary:
    """A training-free measurer.

    Attributes:
        name: one of MEASURERS.
        straight: read at the cell's straight side instead of the contour (for the studies).
        calibration: fitted weights; None takes the shipped ones of the puzzle's regime.
    """

    name: str = "boundary"
    straight: bool = False
    calibration: Calibration | None = None

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs of sides; sparse beyond DENSE_FRAGMENTS fragments."""
        contours = read_contours(puzzle, self.straight)
        regime = regime_of(contours)
        names = MEASURERS[self.name][regime]
        calibration = self.calibration or shipped(self.name, regime, names)
        costs = make_costs(contours, names)
        if len(puzzle) <= DENSE_FRAGMENTS:
            log_cost, stats = dense_log_costs(costs, len(puzzle))
            return Measurements.from_sides_log_p(puzzle.ids, _dense_log_p(log_cost, stats, calibration))
        return _sparse(puzzle, costs, calibration)


def block_log_costs(cost: Cost, block: slice) -> NDArray[np.float32]:
    """log(cost + eps) of a block of sides against all, +inf between sides of one fragment.

    Shapes: B sides -> (B, 4N).
    """
    value = np.log(cost.rows(block) + np.float32(EPSILON))
    rows = np.arange(len(value)) + block.start
    own = rows // z4.ORDER * z4.ORDER
    value[np.arange(len(value))[:, None], own[:, None] + np.arange(z4.ORDER)] = np.inf
    return np.asarray(value)


def dense_log_costs(costs: list[Cost], n: int) -> tuple[list[NDArray[np.float32]], list[RowStats]]:
    """All costs and their row statistics at once. Shapes: (4N, 4N) each."""
    values = [block_log_costs(cost, slice(0, 4 * n)) for cost in costs]
    return values, [row_stats(value) for value in values]


def dense_features(log_cost: list[NDArray[np.float32]], stats: list[RowStats]) -> NDArray[np.float32]:
    """Features of all pairs of sides, for fitting; not finite between sides of one fragment.

    Shapes: -> (4N, 4N, 3 K).
    """
    rows, cols = np.ogrid[: len(log_cost[0]), : len(log_cost[0])]
    return np.concatenate([features(value, rows, cols, s) for value, s in zip(log_cost, stats, strict=True)], axis=-1)


def _dense_log_p(
    log_cost: list[NDArray[np.float32]], stats: list[RowStats], calibration: Calibration
) -> NDArray[np.float32]:
    logits = _logits(log_cost, np.arange(len(log_cost[0])), stats, calibration)
    forward = log_softmax_rows(logits, calibration.none)
    return _limit_mass((forward + forward.T) / 2)


def _logits(
    log_cost: list[NDArray[np.float32]], rows: NDArray[np.int64], stats: list[RowStats], calibration: Calibration
) -> NDArray[np.float32]:
    """w . f of some rows against all sides, -inf between sides of one fragment.

    Shapes: log_cost (B, 4N) each, rows (B,) -> (B, 4N).
    """
    own = np.isinf(log_cost[0])
    cols = np.arange(log_cost[0].shape[1])
    logits = np.zeros_like(log_cost[0])
    for k, (value, s) in enumerate(zip(log_cost, stats, strict=True)):
        finite = np.where(own, np.float32(0), value)
        part = features(finite, rows[:, None], cols, s)
        logits += calibration.of_cost(k, part)
    logits[own] = -np.inf
    return logits


def _limit_mass(log_p: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scales a pair's 16 probabilities down where they sum to more than MAX_MASS. Shapes: (4N, 4N)."""
    n = len(log_p) // z4.ORDER
    mass = np.exp(log_p).reshape(n, 4, n, 4).sum(axis=(1, 3))
    down = np.log(np.minimum(1.0, MAX_MASS / np.maximum(mass, MAX_MASS))).astype(np.float32)
    return log_p + np.repeat(np.repeat(down, 4, axis=0), 4, axis=1)


def _sparse(puzzle: Puzzle, costs: list[Cost], calibration: Calibration) -> Measurements:
    """Two passes over blocks of rows: statistics of every side first, then the best candidates of every side."""
    sides = z4.ORDER * len(puzzle)
    blocks = [slice(start, min(start + BLOCK, sides)) for start in range(0, sides, BLOCK)]
    stats = [_stats_of(cost, blocks) for cost in costs]
    kept_cols = np.empty((sides, TOP), dtype=np.int64)
    kept_logits = np.empty((sides, TOP), dtype=np.float32)
    normaliser = np.empty(sides, dtype=np.float32)
    for block in blocks:
        log_cost = [block_log_costs(cost, block) for cost in costs]
        logits = _logits(log_cost, np.arange(block.start, block.stop), stats, calibration)
        log_p = log_softmax_rows(logits, calibration.none)
        best = np.argpartition(-logits, TOP, axis=1)[:, :TOP]
        kept_cols[block] = best
        kept_logits[block] = np.take_along_axis(logits, best, axis=1)
        normaliser[block] = kept_logits[block, 0] - np.take_along_axis(log_p, best[:, :1], axis=1)[:, 0]
    return _listed(puzzle, kept_cols, kept_logits, normaliser)


def _stats_of(cost: Cost, blocks: list[slice]) -> RowStats:
    parts = [row_stats(block_log_costs(cost, block)) for block in blocks]
    return RowStats(
        np.concatenate([p.least for p in parts]),
        np.concatenate([p.second for p in parts]),
        np.concatenate([p.median for p in parts]),
        np.concatenate([p.which for p in parts]),
    )


def _listed(
    puzzle: Puzzle, cols: NDArray[np.int64], logits: NDArray[np.float32], normaliser: NDArray[np.float32]
) -> Measurements:
    """Sparse rows from the kept candidates; a pair kept by one of its two sides is listed for both.

    Features are symmetric, so the logit of (t, s) is that of (s, t): log p(s | t) = logit - normaliser of t.
    """
    sides, top = cols.shape
    s, t, logit = np.repeat(np.arange(sides), top), cols.ravel(), logits.ravel()
    s, t, logit = np.concatenate([s, t]), np.concatenate([t, s]), np.concatenate([logit, logit])
    _, first = np.unique(s * sides + t, return_index=True)
    s, t, logit = s[first], t[first], logit[first]
    log_p = logit - (normaliser[s] + normaliser[t]) / 2
    # Probabilities of one side sum to at most 1; what is not listed shares the usual tail evenly.
    log_p = np.minimum(log_p, np.float32(np.log(MAX_MASS / 4)) + np.float32(np.log(4)))
    indptr = np.searchsorted(s, np.arange(sides + 1))
    background = float(np.quantile(log_p, 0.02))
    return Measurements.from_sides_log_p(
        puzzle.ids, indptr=indptr, indices=t, values=log_p, background=min(background, -np.log(16.0) - 5.3)
    )
