"""Silhouettes laid apart on a table, anywhere they have room.

The table is a raster of cells. A silhouette, grown by the gap, may lie wherever its correlation with the taken cells is
zero: all such places are known at once, and one of them is drawn. The largest silhouettes go first. Where the last ones
find no room, everything is laid anew; later attempts draw among the places at one end of the table, another end for
each silhouette, which wastes less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from jigsync.values import angles
from jigsync.values.errors import OptionError

Floats = NDArray[np.float64]

CELLS: Final = 400
"""Cells along the table's longer side."""
SLACK: Final = 1.5
"""Cells that rounding to the raster may cost between two silhouettes."""
ATTEMPTS: Final = 12
FREE: Final = 4
"""Of these, the first that draw among all places."""
CROWDED: Final = 0.02
"""Share of the places that the others draw among."""
CONTACT: Final = 0.75
"""Two outlines touch when they are so near, px."""
STEP: Final = 0.5
"""Spacing of the outlines' samples when two are brought to touch, px."""
MAX_SAMPLES: Final = 20_000


def lay_apart(
    silhouettes: list[list[Floats]], region: Floats, size: tuple[int, int], gap: float, rng: np.random.Generator
) -> list[Floats] | None:
    """Where the silhouettes' origins go; None when there is no room.

    Args:
        silhouettes: each the outlines of what moves together, (L, 2) as (x, y) about its own origin, px.
        region: convex, (4, 2); nothing is nearer to its rim than the gap.
        size: (height, width) of the frame that holds the region.
        gap: least distance, px.
        rng: what draws.

    Shapes: -> (2,) for each silhouette.
    """
    cell = max(1.0, max(size) / CELLS)
    shape = tuple(int(np.ceil(side / cell)) for side in size)
    beyond = np.ones(shape, dtype=np.uint8)
    cv2.fillConvexPoly(beyond, _fixed(region / cell), 0, shift=_SHIFT)
    radius = int(np.ceil(gap / cell + SLACK))
    stamps = [_stamp(outlines, cell, radius) for outlines in silhouettes]
    if any(stamp.grown.shape[0] > shape[0] or stamp.grown.shape[1] > shape[1] for stamp in stamps):
        return None
    order = np.argsort([-int(stamp.own.sum()) for stamp in stamps], kind="stable")
    for attempt in range(ATTEMPTS):
        placed = _attempt([stamps[k] for k in order], beyond, attempt >= FREE, rng)
        if placed is not None:
            places: list[Floats] = [np.zeros(2)] * len(order)
            for k, at in zip(order, placed, strict=True):
                places[k] = at * cell
            return places
    return None


def touch(one: Floats, other: Floats, rng: np.random.Generator) -> Floats:
    """How far `other` is to be moved so that it touches `one`, coming in from a drawn direction.

    Steps by the least distance cannot jump over a contact. Shapes: (L, 2), (M, 2) -> (2,).
    """
    middle = one.mean(axis=0) - other.mean(axis=0)
    one, other = _dense(one), _dense(other + middle)
    tree = cKDTree(one)
    reach = float(np.hypot(*np.ptp(one, axis=0)) + np.hypot(*np.ptp(other, axis=0)))
    for _ in range(ATTEMPTS):
        direction = angles.act(float(rng.uniform(-np.pi, np.pi)), np.array([1.0, 0.0]))
        away = reach
        while away > -reach:
            least = float(np.min(tree.query(other + away * direction)[0]))
            if least <= CONTACT:
                return np.asarray(middle + away * direction)
            away -= max(least - STEP, STEP / 2)
    raise OptionError("Two fragments pass through each other's hollows and cannot be made to touch: try another seed.")


def no_room(what: str) -> OptionError:
    """The sentence for what cannot be laid apart."""
    return OptionError(f"{what} do not fit apart on the photograph: ask for a smaller share, scale, gap or card.")


_SHIFT: Final = 6


def _fixed(points: Floats) -> NDArray[np.int32]:
    """Points as OpenCV's drawing takes them: pixel centres are whole numbers, in 1/64."""
    return np.rint((points - 0.5) * (1 << _SHIFT)).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Stamp:
    """A silhouette in cells: by itself, grown by the gap, and the (x, y) of its origin in both."""

    own: NDArray[np.uint8]
    grown: NDArray[np.float32]
    origin: Floats


def _stamp(outlines: list[Floats], cell: float, radius: int) -> _Stamp:
    low = np.floor(np.min([outline.min(axis=0) for outline in outlines], axis=0) / cell) - radius - 1
    high = np.ceil(np.max([outline.max(axis=0) for outline in outlines], axis=0) / cell) + radius + 1
    width, height = (high - low).astype(np.int64)
    own = np.zeros((int(height), int(width)), dtype=np.uint8)
    for outline in outlines:
        points = _fixed(outline / cell - low)
        cv2.fillPoly(own, [points], 1, shift=_SHIFT)
        cv2.polylines(own, [points], True, 1, shift=_SHIFT)
    disk = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return _Stamp(own, cv2.dilate(own, disk).astype(np.float32), -low)


def _attempt(
    stamps: list[_Stamp], beyond: NDArray[np.uint8], crowded: bool, rng: np.random.Generator
) -> list[Floats] | None:
    taken = beyond.astype(np.float32)
    places = []
    for stamp in stamps:
        rows, cols = np.nonzero(cv2.matchTemplate(taken, stamp.grown, cv2.TM_CCORR) < 0.5)
        if not len(rows):
            return None
        if crowded:
            x, y = rng.standard_normal(2)
            count = max(1, int(CROWDED * len(rows)))
            kept = np.argpartition(x * cols + y * rows, count - 1)[:count]
            rows, cols = rows[kept], cols[kept]
        pick = int(rng.integers(len(rows)))
        row, col = int(rows[pick]), int(cols[pick])
        there = taken[row : row + stamp.own.shape[0], col : col + stamp.own.shape[1]]
        np.maximum(there, stamp.own, out=there)
        places.append(np.array([col, row]) + stamp.origin)
    return places


def _dense(outline: Floats) -> Floats:
    """The closed outline at about every STEP px, or coarser where that is too much."""
    closed = np.concatenate([outline, outline[:1]])
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    at = np.linspace(0, length[-1], min(MAX_SAMPLES, max(16, int(length[-1] / STEP))), endpoint=False)
    return np.stack([np.interp(at, length, closed[:, 0]), np.interp(at, length, closed[:, 1])], axis=1)
