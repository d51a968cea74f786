"""Who touches whom in a placement: by cells where there is a grid, else by the fragments' outlines.

Two fragments of one component touch when the border of one comes within REACH of the other's opaque pixels along more
than ALONG. Both are shares of the pair's mean sqrt(area). REACH is the tolerance of positions: a right answer may leave
gaps of that size, and so may worn fragments. ALONG is more than twice as much, so that corners that meet do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.placement import Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

Contacts = frozenset[tuple[str, str]]
"""Pairs of ids, the smaller one first."""

REACH: Final = 0.10
ALONG: Final = 0.25
OPAQUE: Final = 128
"""The alpha from which on a pixel is the fragment's."""


def pair_of(one: str, other: str) -> tuple[str, str]:
    """A pair as `Contacts` has it."""
    return (one, other) if one < other else (other, one)


def contacts_of_cells(placement: Placement) -> Contacts:
    """The pairs in neighbouring cells of a grid."""
    at: dict[tuple[tuple[int, int] | None, int], str] = {
        (placed.cell, placed.component): name for name, placed in placement.items() if placed.cell is not None
    }
    found = set()
    for (cell, component), name in at.items():
        assert cell is not None
        for bearing in (z4.E, z4.S):
            d_row, d_col = z4.bearing_offset(bearing)
            other = at.get(((cell[0] + d_row, cell[1] + d_col), component))
            if other is not None:
                found.add(pair_of(name, other))
    return frozenset(found)


def contacts_of_poses(puzzle: Puzzle, placement: Placement, sizes: Mapping[str, float]) -> Contacts:
    """The pairs that touch where their poses put them.

    Args:
        placement: in pixels; fragments that the puzzle does not have touch nothing.
        sizes: sqrt(area) of every fragment of the puzzle.
    """
    shapes = []
    largest = max(sizes.values(), default=0.0)
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        placed = placement.get(name)
        if placed is not None and placed.pose is not None:
            shape = shape_of(pixels, REACH * largest)
            if shape is not None:
                shapes.append((name, placed, placed.pose, shape))
    centres = np.array([pose.act(shape.middle) for _, _, pose, shape in shapes]).reshape(-1, 2)
    radii = np.array([shape.radius for _, _, _, shape in shapes])
    found = set()
    for k, (name, placed, pose, shape) in enumerate(shapes):
        distance = np.hypot(*(centres[:k] - centres[k]).T)
        for j in np.flatnonzero(distance <= radii[:k] + radii[k] + REACH * largest):
            other, its, its_pose, its_shape = shapes[j]
            if its.component != placed.component:
                continue
            size = (sizes[name] + sizes[other]) / 2
            along = max(
                _along(shape, its_shape, its_pose.between(pose), size),
                _along(its_shape, shape, pose.between(its_pose), size),
            )
            if along > ALONG * size:
                found.add(pair_of(name, other))
    return frozenset(found)


@dataclass(frozen=True, eq=False)
class Shape:
    """A fragment's opaque pixels, in pixels from the centre of its picture.

    Attributes:
        border: (B, 2) centres of the pixels at its border.
        middle, radius: of a circle around all of them.
        away: (H, W) how far a pixel is from the opaque ones, the picture widened by as much as matters.
        corner: (x, y) of the centre of away[0, 0].
    """

    border: NDArray[np.float64]
    middle: NDArray[np.float64]
    radius: float
    away: NDArray[np.float32]
    corner: NDArray[np.float64]


def shape_of(pixels: Pixels, reach: float) -> Shape | None:
    """The shape, ready for distances up to `reach` pixels; None for a fragment without an opaque pixel."""
    wider = int(np.ceil(reach)) + 2
    opaque = np.pad((pixels[..., 3] >= OPAQUE).astype(np.uint8), wider)
    rows, cols = np.nonzero(opaque - cv2.erode(opaque, np.ones((3, 3), dtype=np.uint8)))
    if not rows.size:
        return None
    corner = 0.5 - wider - np.array(pixels.shape[1::-1]) / 2
    border = np.stack([cols, rows], axis=1) + corner
    middle = (border.min(axis=0) + border.max(axis=0)) / 2
    radius = float(np.hypot(*(border - middle).T).max())
    away = cv2.distanceTransform(1 - opaque, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return Shape(border, middle, radius, np.asarray(away, dtype=np.float32), corner)


def near(of: Shape, to: Shape, to_from_of: Pose, reach: float) -> NDArray[np.bool_]:
    """Which pixels of one fragment's border are within reach of another one. Shapes: -> (B,)."""
    at = np.rint(to_from_of.act(of.border) - to.corner).astype(np.int64)
    height, width = to.away.shape
    inside = (at >= 0).all(axis=1) & (at[:, 0] < width) & (at[:, 1] < height)
    inside[inside] = to.away[at[inside, 1], at[inside, 0]] <= reach
    return np.asarray(inside)


def _along(of: Shape, to: Shape, to_from_of: Pose, size: float) -> float:
    """How many pixels of one fragment's border are within REACH of another one."""
    return float(np.count_nonzero(near(of, to, to_from_of, REACH * size)))
