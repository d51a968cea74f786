"""Fragments in cells moved to where their outlines meet: a grid's answer knows cells, and outlines know pixels.

Where a fragment's cell lies in its picture is an estimate, and so is the pitch. The joint polish of free poses takes
the answer from there: contacts at one gap, which is about the pitch less the fragments' size, and neighbours held where
their cells want them. With c the doubts of two centres, a those of their angles, q that of the pitch and u the step
from one to the other,

    covariance of what a link leaves over = (c_i^2 + c_j^2) I + (q pitch)^2 u u^T   and   a_i^2 + a_j^2

What was worn off varies slowly along a seam: contacts at a wide gap err by more than the polish takes them to. Links
count for so much more:

    trust = (NOISE^2 + (VARIES gap)^2) / noise_of(gap)^2
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.free import motion
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.polish import NOISE, noise_of, polish
from jigsync.solvers.free.shapes import Shapes
from jigsync.values import angles
from jigsync.values.cell_frames import CellFrames
from jigsync.values.outlines import Matches

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST: Final = 400
"""Fragments: the polish solves dense equations."""
LEAST: Final = (0.003, 0.003)
"""Least doubt of a frame: pitches, radians; of the pitch, as of a centre."""
VARIES: Final = 0.24
"""Standard deviation of what was worn off two sides, of the gap."""


def seated(frames: CellFrames, row: Ints, col: Ints, pose: Floats) -> Floats:
    """Poses after the fit. Shapes: row, col (N,), -1 for fragments without a cell; pose (N, 3) -> (N, 3)."""
    if len(row) > MOST:
        return pose
    shapes = Shapes.of(frames.outlines)
    there = row >= 0
    of_pitch = max(frames.pitch_off, LEAST[0]) * frames.pitch
    i, j = np.nonzero(np.triu(np.abs(row[:, None] - row) + np.abs(col[:, None] - col) == 1) & there[:, None] & there)
    doubt = np.maximum(frames.off, LEAST) * (frames.pitch, 1.0)
    both = doubt[i] ** 2 + doubt[j] ** 2
    step = angles.act(-pose[i, 2], np.stack([col[j] - col[i], row[j] - row[i]], axis=1).astype(np.float64))
    spread = np.zeros((len(i), 3, 3))
    spread[:, :2, :2] = both[:, :1, None] * np.eye(2) + of_pitch**2 * step[:, :, None] * step[:, None]
    spread[:, 2, 2] = both[:, 1]
    links = Links(i, j, motion.between(pose[i], pose[j]), np.asarray(np.linalg.inv(spread), dtype=np.float64))
    nothing = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    gap = max(0.0, frames.pitch - float(np.median(np.sqrt(shapes.area))))
    trust = (NOISE**2 + (VARIES * gap) ** 2) / noise_of(gap) ** 2
    done = polish(
        shapes, pose, np.where(there, 0, -1), Joined.of(frames.outlines, nothing), links,
        gap=gap, gap_sigma=of_pitch / np.sqrt(trust), trust=trust, turning=not frames.quarter,
    )  # fmt: skip
    return done.pose
