"""Fragments in cells moved to where their outlines meet: a grid's answer knows cells, and outlines know pixels.

Where a fragment's cell lies in its picture is an estimate. The joint polish of free poses takes the answer from there:
contacts at one gap, which is about the pitch less the fragments' size, and neighbours held where their cells want them
by what the estimates are worth.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.free import motion
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.polish import polish
from jigsync.solvers.free.shapes import Shapes
from jigsync.values.cell_frames import CellFrames
from jigsync.values.outlines import Matches

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST: Final = 400
"""Fragments: the polish solves dense equations."""
OF_GAP: Final = 0.03
"""Standard deviation of the expected gap, in pitches."""
LEAST: Final = (0.01, 0.01)
"""Least doubt of a frame: pitches, radians."""


def seated(frames: CellFrames, row: Ints, col: Ints, pose: Floats) -> Floats:
    """Poses after the fit. Shapes: row, col (N,), -1 for fragments without a cell; pose (N, 3) -> (N, 3)."""
    if len(row) > MOST:
        return pose
    shapes = Shapes.of(frames.outlines)
    there = row >= 0
    i, j = np.nonzero(np.triu(np.abs(row[:, None] - row) + np.abs(col[:, None] - col) == 1) & there[:, None] & there)
    doubt = np.maximum(frames.off, LEAST) * (frames.pitch, 1.0)
    both = doubt[i] ** 2 + doubt[j] ** 2
    information = np.zeros((len(i), 3, 3))
    information[:, 0, 0] = information[:, 1, 1] = 1 / both[:, 0]
    information[:, 2, 2] = 1 / both[:, 1]
    links = Links(i, j, motion.between(pose[i], pose[j]), information)
    nothing = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    gap = max(0.0, frames.pitch - float(np.median(np.sqrt(shapes.area))))
    done = polish(
        shapes, pose, np.where(there, 0, -1), Joined.of(frames.outlines, nothing), links,
        gap=gap, gap_sigma=OF_GAP * frames.pitch, trust=1.0, turning=not frames.quarter,
    )  # fmt: skip
    return done.pose
