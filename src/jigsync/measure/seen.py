"""The outlines of a puzzle, and what their samples see: read once, for all networks that look along outlines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.outline import Scan, read_outlines
from jigsync.measure.outline_features import features
from jigsync.values.outlines import Outlines
from jigsync.values.puzzle import Puzzle


@dataclass(frozen=True, eq=False)
class Seen:
    """What is seen along outlines.

    Attributes:
        puzzle: whose fragments they are of.
        outlines, scans: of all fragments.
        features: (T, CHANNELS) of `outline_features`.
    """

    puzzle: Puzzle
    outlines: Outlines
    scans: list[Scan]
    features: NDArray[np.float32]

    @classmethod
    def of(cls, puzzle: Puzzle) -> Seen:
        """Reads a puzzle."""
        outlines, scans = read_outlines(puzzle)
        return cls(puzzle, outlines, scans, features(puzzle, outlines, scans))
