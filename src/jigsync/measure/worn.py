"""Costs for worn fragments: eroded, irregular, faded. Robust row by row, where `costs` compares sides as a whole.

With c_s(y) the Lab colour just inside the contour, o_s(y) its offset and y' = L - 1 - y the row across the seam:

    gap(y)  = -(o_s(y) + o_t(y'))                      what is missing between the two, in cells
    r(y)    = |gap(y) - usual|                         usual: the puzzle's median gap
    fit     = mean_y min(r(y) + max(0, -gap(y)), tau)  overlapping is impossible, so it counts twice
    w(y)    = exp(-(r(y) / soft)^2) + floor            rows that fit are rows whose colours may be compared
    edge    = (sum_y w min(|c_s(y) - c_t(y')|, cap) + prior cap / 2) / (sum_y w + prior)
    texture = the same after the weighted mean difference of the two sides (gain, bias, fade) is taken off

A row on which one side has no fragment at all fits as badly as can be. Corners, bites and overhangs spoil a few rows
completely; the limits keep them from spoiling the rest.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.contour import Contours, facing
from jigsync.measure.costs import Cost, to_lab

Matrix = NDArray[np.float32]

TAU: Final = 0.15
SOFT: Final = 0.05
FLOOR: Final = 0.02
CAP: Final = 40.0
"""Lab distance from which two colours are simply different."""
PRIOR: Final = 0.4
"""Share of the rows' weight that a middling difference has, so that two sides with few fitting rows stay unknown."""
EDGE_DEPTH: Final = 0.03
"""Depth over which the colour just inside the contour is averaged, in cells."""
SAMPLES: Final = 32
"""Rows compared: every second one of 64 says nearly as much in half the time."""
NAMES: Final = ("fit", "edge", "texture")


class Worn:
    """The three costs, computed together and handed out one by one."""

    def __init__(self, contours: Contours) -> None:
        step = max(1, contours.offset.shape[1] // SAMPLES)
        rows = contours.offset.shape[1] // step * step
        shape = (len(contours.offset), rows // step, step)
        weight = contours.valid[:, :rows].reshape(shape).astype(np.float32)
        count = np.maximum(weight.sum(axis=2), 1)
        depth = max(1, round(EDGE_DEPTH * contours.cell))
        lab = to_lab(np.ascontiguousarray(contours.colour[:, :rows, :depth].mean(axis=2)))
        self._valid: NDArray[np.bool_] = np.asarray(weight.any(axis=2))
        self._offset = (contours.offset[:, :rows].reshape(shape) * weight).sum(axis=2) / count
        self._lab = (lab.reshape(*shape, 3) * weight[..., None]).sum(axis=2) / count[..., None]
        self._usual = np.float32(-2 * np.median(self._offset[self._valid]) if self._valid.any() else 0.0)
        self._memo: tuple[slice, tuple[Matrix, ...]] | None = None

    def costs(self) -> dict[str, Cost]:
        """name -> cost, for NAMES."""
        return {name: _One(self, k) for k, name in enumerate(NAMES)}

    def rows(self, block: slice) -> tuple[Matrix, ...]:
        """All three at once; the last block is remembered.

        Shapes: B sides -> three (B, 4N).
        """
        if self._memo is None or self._memo[0] != block:
            parts = [self._row(s) for s in range(block.start, block.stop)]
            self._memo = block, tuple(np.stack(column) for column in zip(*parts, strict=True))
        return self._memo[1]

    def _row(self, s: int) -> tuple[Matrix, Matrix, Matrix]:
        """One side against all. Shapes: -> (4N,) each; temporaries are (4N, L, 3)."""
        valid = facing(self._valid) & self._valid[s]
        gap = -(facing(self._offset) + self._offset[s])
        r = np.where(valid, np.abs(gap - self._usual), np.float32(TAU))
        fit = np.minimum(r + np.maximum(-gap, 0), TAU).mean(axis=1)
        w = (np.exp(-np.square(r * np.float32(1 / SOFT))) + np.float32(FLOOR)) * valid
        total = w.sum(axis=1)
        prior = np.float32(PRIOR * w.shape[1])
        difference = facing(self._lab) - self._lab[s]
        mean = np.einsum("sl,slc->sc", w, difference) / (total + np.float32(1e-6))[:, None]
        edge, texture = (
            ((w * _limited(d)).sum(axis=1) + prior * np.float32(CAP / 2)) / (total + prior)
            for d in (difference, difference - mean[:, None])
        )
        return fit, edge, texture


def _limited(difference: NDArray[np.float32]) -> NDArray[np.float32]:
    """min(|d|, CAP). Shapes: (S, L, 3) -> (S, L)."""
    return np.asarray(np.minimum(np.sqrt(np.einsum("slc,slc->sl", difference, difference)), np.float32(CAP)))


class _One:
    """One of the three as a Cost."""

    noise = 1e-3
    """A thousandth of a cell, or of a Lab unit."""

    def __init__(self, worn: Worn, which: int) -> None:
        self._worn, self._which = worn, which

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N)."""
        return self._worn.rows(block)[self._which]
