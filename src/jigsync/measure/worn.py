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

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.contour import Contours, Scalar, facing
from jigsync.measure.costs import CHUNK, Cost, to_lab

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
        seen: NDArray[np.bool_] = np.asarray(weight.any(axis=2))
        offset = (contours.offset[:, :rows].reshape(shape) * weight).sum(axis=2) / count
        colour = (lab.reshape(*shape, 3) * weight[..., None]).sum(axis=2) / count[..., None]
        self._usual = np.float32(-2 * np.median(offset[seen]) if seen.any() else 0.0)
        # Rows first, sides last: every step below is about all sides at once, on one row.
        self._here = _Rows.of(offset, seen, colour)
        self._there = _Rows.of(facing(offset), facing(seen), facing(colour))
        self._memo: tuple[slice, tuple[Matrix, ...]] | None = None

    def costs(self) -> dict[str, Cost]:
        """name -> cost, for NAMES."""
        return {name: _One(self, k) for k, name in enumerate(NAMES)}

    def rows(self, block: slice) -> tuple[Matrix, ...]:
        """All three at once; the last block is remembered.

        Shapes: B sides -> three (B, 4N).
        """
        if self._memo is None or self._memo[0] != block:
            sides = self._here.offset.shape[1]
            step = max(1, CHUNK // sides)
            chunks = [slice(k, min(k + step, block.stop)) for k in range(block.start, block.stop, step)]
            made = np.empty((len(NAMES), block.stop - block.start, sides), dtype=np.float32)
            for chunk in chunks:
                made[:, chunk.start - block.start : chunk.stop - block.start] = self._chunk(chunk)
            self._memo = block, tuple(made)
        return self._memo[1]

    def _chunk(self, chunk: slice) -> tuple[Matrix, Matrix, Matrix]:
        """Some sides against all, row by row of the seam. Shapes: C sides -> (C, 4N) each; w is (L, C, 4N)."""
        here, there = self._here.of_sides(chunk), self._there
        samples, shape = len(there.offset), (here.offset.shape[1], there.offset.shape[1])
        weights = np.empty((samples, *shape), dtype=np.float32)
        fit, total, edge, texture = np.zeros((4, *shape), dtype=np.float32)
        mean = np.zeros((3, *shape), dtype=np.float32)
        for y, w in enumerate(weights):
            both = there.seen[y] & here.seen[y]
            gap = -(there.offset[y] + here.offset[y])
            r = np.where(both, np.abs(gap - self._usual), np.float32(TAU))
            fit += np.minimum(r + np.maximum(-gap, 0), np.float32(TAU))
            w[:] = (np.exp(-np.square(r * np.float32(1 / SOFT))) + np.float32(FLOOR)) * both
            total += w
            square = np.zeros(shape, dtype=np.float32)
            for channel in range(3):
                difference = there.lab[y, channel] - here.lab[y, channel]
                mean[channel] += w * difference
                square += difference * difference
            edge += w * _limited(square)
        mean /= total + np.float32(1e-6)
        for y, w in enumerate(weights):
            square = np.zeros(shape, dtype=np.float32)
            for channel in range(3):
                difference = there.lab[y, channel] - here.lab[y, channel] - mean[channel]
                square += difference * difference
            texture += w * _limited(square)
        prior = np.float32(PRIOR * samples)
        unknown = prior * np.float32(CAP / 2)
        return fit / np.float32(samples), (edge + unknown) / (total + prior), (texture + unknown) / (total + prior)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Sides by rows. Shapes: offset, seen (L, S) and lab (L, 3, S), with a further 1 at the end for `of_sides`."""

    offset: NDArray[np.float32]
    seen: NDArray[np.bool_]
    lab: NDArray[np.float32]

    @classmethod
    def of(cls, offset: Matrix, seen: NDArray[np.bool_], lab: NDArray[np.float32]) -> _Rows:
        return cls(_sides_last(offset), _sides_last(seen), _sides_last(lab))

    def of_sides(self, sides: slice) -> _Rows:
        return _Rows(self.offset[..., sides, None], self.seen[..., sides, None], self.lab[..., sides, None])


def _sides_last(part: NDArray[Scalar]) -> NDArray[Scalar]:
    return np.ascontiguousarray(np.moveaxis(part, 0, -1))


def _limited(square: Matrix) -> Matrix:
    """min(|d|, CAP) of |d|^2. Shapes: any."""
    return np.asarray(np.minimum(np.sqrt(square), np.float32(CAP)))


class _One:
    """One of the three as a Cost."""

    noise = 1e-3
    """A thousandth of a cell, or of a Lab unit."""

    def __init__(self, worn: Worn, which: int) -> None:
        self._worn, self._which = worn, which

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N)."""
        return self._worn.rows(block)[self._which]
