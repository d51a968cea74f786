"""Outlines: fragments as closed curves, and the matches between their samples.

An outline runs clockwise as displayed (the interior is on the right hand), at equal arc length, in the frame of its
fragment: pixels from the centre of its picture, x right, y down. A mate's outline runs against it. All samples of a
puzzle are numbered through: fragment i has the samples start[i] .. start[i + 1] - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.values.errors import FormatError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outlines:
    """The outlines of N fragments, T samples in all.

    Attributes:
        start: (N + 1,) int64.
        xy: (T, 2) float64.
        normal: (T, 2) float64, unit, out of the fragment.
        step: arc length between two samples, px; one for all fragments.
    """

    start: Ints
    xy: Floats
    normal: Floats
    step: float

    def __post_init__(self) -> None:
        total = int(self.start[-1])
        if self.xy.shape != (total, 2) or self.normal.shape != (total, 2):
            raise FormatError(f"Outlines of {total} samples need xy and normal of shape ({total}, 2).")

    @property
    def n(self) -> int:
        """Number of fragments."""
        return len(self.start) - 1

    @property
    def owner(self) -> Ints:
        """(T,) the fragment of each sample."""
        return np.repeat(np.arange(self.n), np.diff(self.start))

    def of(self, i: int) -> Floats:
        """(L, 2) the outline of one fragment."""
        return self.xy[self.start[i] : self.start[i + 1]]

    def select(self, members: Ints) -> Outlines:
        """The outlines of some fragments, in the given order."""
        index = samples_of(self.start, members)
        count = np.diff(self.start)[members]
        return Outlines(np.concatenate([[0], np.cumsum(count)]), self.xy[index], self.normal[index], self.step)


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of samples that may have touched, each pair once.

    Shapes: s, t (M,) int64 sample numbers of different fragments; strength (M,) float64 in [0, 1].
    """

    s: Ints
    t: Ints
    strength: Floats

    def __len__(self) -> int:
        return len(self.s)

    def select(self, outlines: Outlines, members: Ints) -> Matches:
        """The matches between some fragments, numbered as in `outlines.select(members)`."""
        index = samples_of(outlines.start, members)
        at = np.full(int(outlines.start[-1]), -1, dtype=np.int64)
        at[index] = np.arange(len(index))
        kept = (at[self.s] >= 0) & (at[self.t] >= 0)
        return Matches(at[self.s[kept]], at[self.t[kept]], self.strength[kept])


def samples_of(start: Ints, members: Ints) -> Ints:
    """The numbers of all samples of some fragments, in the given order."""
    parts = [np.arange(start[i], start[i + 1]) for i in members]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
