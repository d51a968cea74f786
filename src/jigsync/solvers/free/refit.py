"""Refitting hypotheses by their own contacts: Gauss-Newton over each i_from_j by itself, all at once.

A measured hypothesis is off by some pixels; where the two outlines run along each other says much better how the
fragments lie, as soon as the gap between outlines that touch is known. Matches hold the pair along its seam, and the
measurement itself holds it where nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.engine import outlines as engine
from jigsync.engine.outlines import Pairs
from jigsync.solvers.free import motion
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.polish import ALONG, APART, FACING, noise_of
from jigsync.solvers.free.shapes import Shapes
from jigsync.values import angles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDEST, SHARPEST = 0.04, 0.012
"""Robust scale of a contact in the first and in the last round, in units of the median fragment's size."""
ROUNDS: Final = 8
HOLD: Final = 0.5
"""Of the measured information: contacts of worn edges know a pose no better than the matches that it came from."""
LOOSE: Final = (0.01, 0.012)
"""Least standard deviation of a refitted pose: of the median fragment's size, and radians."""


@dataclass(frozen=True, eq=False)
class Refitted:
    """Hypotheses after the fit.

    Attributes:
        links: the poses, and their information.
        length: (K,) contact, px of outline, counted where the two run within the scatter of the gap.
        support: (K,) sum of the strengths of the pair's matches that lie together.
        overlap: (K,) share of the smaller fragment's area that lies inside the other one.
    """

    links: Links
    length: Floats
    support: Floats
    overlap: Floats

    def keep(self, which: NDArray[np.bool_] | Ints) -> Refitted:
        """Some of them."""
        return Refitted(self.links.keep(which), self.length[which], self.support[which], self.overlap[which])


def refit(shapes: Shapes, links: Links, joined: Joined, gap: float, slack: float) -> Refitted:
    """Fits every hypothesis by its contacts at a known gap.

    Args:
        gap: px between outlines that touch.
        slack: px that two fragments may lie inside each other.
    """
    pose = links.i_from_j.copy()
    row, s, t, strength = joined.between(links.i, links.j)
    size, sigma = shapes.size, ALONG * shapes.outlines.step
    information = links.information
    length: Floats = np.zeros(len(pose))
    support = length
    still = np.zeros_like(pose)
    for turn in range(ROUNDS):
        scale = max(size * WIDEST * (SHARPEST / WIDEST) ** (turn / (ROUNDS - 1)), 2 * noise_of(gap))
        reach = min(shapes.reach, gap + 3 * scale)
        noise = max(scale / 3, noise_of(gap))
        pairs = Pairs(links.i, links.j, still, pose)  # i's frame is the canvas: only i_from_j moves
        blocks, count = engine.contacts(shapes.rasters, pairs, gap, scale, reach, FACING, 1.0 / (APART * noise**2))
        length = (count * shapes.outlines.step).astype(np.float64)
        unit = 1.0 / (APART * sigma**2)
        support = engine.matches(shapes.rasters, pairs, row, s, t, strength, reach + sigma, sigma, unit, blocks)
        upper = np.triu(blocks[:, 3:6, 3:6])
        matrix = upper + np.triu(upper, 1).transpose(0, 2, 1)
        error = motion.difference(pose, links.i_from_j)
        right = -blocks[:, 3:6, 7] - HOLD * np.einsum("kab,kb->ka", links.information, error)
        information = matrix + HOLD * links.information
        move = np.linalg.solve(information + 1e-9 * np.eye(3), right[..., None])[..., 0]
        limit = np.minimum(1.0, 0.1 * size / np.maximum(np.hypot(*move[:, :2].T), 1e-9))
        pose = pose + move * limit[:, None]
        pose[:, 2] = angles.wrap(pose[:, 2])
    overlap = shapes.overlap(links.i, links.j, pose, slack)
    loose = np.diag([LOOSE[0] * size, LOOSE[0] * size, LOOSE[1]]) ** 2
    information = np.linalg.inv(np.linalg.inv(information + 1e-9 * np.eye(3)) + loose)
    return Refitted(Links(links.i, links.j, pose, information), length, support, overlap)
