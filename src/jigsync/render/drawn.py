"""The pixels of placed fragments, as they stand on a canvas.

Fragments at quarter turns are copied where they stand on whole pixels, which `Layout.whole` makes them do. All others
are resampled once, in premultiplied colours:

    x_canvas = zoom (R(angle) (x_frag - c_frag) + xy)

in continuous coordinates: pixel (row r, col c) covers [c, c + 1] x [r, r + 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.render.layout import ROUNDING, Layout
from jigsync.values import z4
from jigsync.values.placement import Assembly, Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

KERNEL: Final = cv2.INTER_CUBIC
RIM: Final = 2
"""Pixels around a fragment that the kernel may touch."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """One placed fragment as it stands, cut to what can be seen of it: pixels go to canvas[top:, left:]."""

    name: str
    placed: Placed
    top: int
    left: int
    pixels: Pixels

    @property
    def region(self) -> tuple[slice, slice]:
        """The part of the canvas it covers."""
        height, width = self.pixels.shape[:2]
        return slice(self.top, self.top + height), slice(self.left, self.left + width)


def drawn_fragments(puzzle: Puzzle, solution: Assembly, layout: Layout) -> Iterator[Drawn]:
    """The placed fragments in the puzzle's order, which no gauge changes; those outside the canvas are left out."""
    for name, stored in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        pose = layout.poses.get(name)
        if pose is None:
            continue
        corner = _corner(stored, pose, layout.whole)
        if corner is None:
            found = _resampled(stored, pose, layout)
        else:
            found = _copied(z4.turn_pixels(stored, pose.turns or 0), *corner, layout)
        if found is not None:
            yield Drawn(name, solution.placement[name], *found)


def _corner(stored: Pixels, pose: Pose, whole: bool) -> tuple[int, int] | None:
    """(top, left) of the upright fragment where it can be copied, else None."""
    if pose.turns is None:
        return None
    height, width = z4.turned_shape(stored.shape[:2], pose.turns)
    top, left = pose.xy[1] - height / 2, pose.xy[0] - width / 2
    if not whole and max(abs(top - round(top)), abs(left - round(left))) > ROUNDING:
        return None
    return math.floor(top + ROUNDING), math.floor(left + ROUNDING)


def _copied(upright: Pixels, top: int, left: int, layout: Layout) -> tuple[int, int, Pixels] | None:
    box = _visible(upright[..., 3], top, left, layout.full_size)
    if box is None:
        return None
    pixels = upright[box]
    top, left = top + box[0].start, left + box[1].start
    if layout.shrink > 1:
        top, left, pixels = _shrink(pixels, top, left, layout.shrink)
    if (zoom := layout.zoom) > 1:
        top, left, pixels = top * zoom, left * zoom, pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
    return top, left, pixels


def _resampled(stored: Pixels, pose: Pose, layout: Layout) -> tuple[int, int, Pixels] | None:
    used = _visible(stored[..., 3], 0, 0, stored.shape[:2])
    if used is None:
        return None
    zoom, (height, width) = layout.zoom, stored.shape[:2]
    middle = np.array([width, height]) / 2
    corners = np.array([(x, y) for x in (used[1].start, used[1].stop) for y in (used[0].start, used[0].stop)])
    on_canvas = zoom * pose.act(corners - middle)
    room = zoom * np.array(layout.full_size[::-1])
    low = np.maximum(np.floor(on_canvas.min(axis=0)).astype(int) - RIM, 0)
    high = np.minimum(np.ceil(on_canvas.max(axis=0)).astype(int) + RIM, room)
    if (low >= high).any():
        return None
    # In indices, which are half a pixel less than coordinates.
    turn = zoom * pose.matrix[:, :2]
    shift = turn @ (0.5 - middle) + zoom * np.array(pose.xy) - 0.5 - low
    matrix = np.column_stack([turn, shift])
    warped = cv2.warpAffine(stored, matrix, [int(side) for side in high - low], flags=KERNEL)
    pixels = np.asarray(warped, dtype=np.uint8)
    pixels[..., :3] = np.minimum(pixels[..., :3], pixels[..., 3:])  # the kernel overshoots
    left, top = (int(value) for value in low)
    return _shrink(pixels, top, left, layout.shrink) if layout.shrink > 1 else (top, left, pixels)


def _visible(alpha: NDArray[np.uint8], top: int, left: int, canvas: tuple[int, int]) -> tuple[slice, slice] | None:
    """The smallest box of a fragment at (top, left) that holds all of it that is on the canvas."""
    box = []
    for axis, first in enumerate((top, left)):
        used = np.flatnonzero(alpha.any(axis=1 - axis))
        if used.size == 0:
            return None
        start, stop = max(int(used[0]), -first), min(int(used[-1]) + 1, canvas[axis] - first)
        if start >= stop:
            return None
        box.append(slice(start, stop))
    return box[0], box[1]


def _shrink(pixels: Pixels, top: int, left: int, k: int) -> tuple[int, int, Pixels]:
    """Averages k x k blocks of the canvas; pixels off the fragment count as transparent.

    Premultiplied colours may be averaged like this, straight ones may not.
    """
    height, width = pixels.shape[:2]
    before = (top % k, left % k)
    after = (-(before[0] + height) % k, -(before[1] + width) % k)
    padded = np.pad(pixels, ((before[0], after[0]), (before[1], after[1]), (0, 0)))
    rows, cols = padded.shape[0] // k, padded.shape[1] // k
    sums = padded.reshape(rows, k, cols, k, 4).sum(axis=(1, 3), dtype=np.uint32)
    return top // k, left // k, ((sums + k * k // 2) // (k * k)).astype(np.uint8)
