"""Fragments as a solver feels them: how far a point is from a fragment's outline, and which sample is nearest.

Every fragment has a raster around its outline with a margin; each cell knows its signed distance (positive outside)
and its nearest sample, so that a lookup costs the same whatever the outline. Cells have one size for a puzzle, about a
40th of the median fragment, except in fragments so large that their raster would not stay small.

    overlap(a, b)    share of the smaller one's area that lies deeper than `slack` inside the other one
    contacts(a, b)   samples of a and the nearest point of b's outline, where the two run against each other
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.engine.outlines import Kept, Pairs, overlap
from jigsync.solvers.free import motion
from jigsync.values.outlines import Outlines, samples_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CELLS: Final = 40
"""Raster cells along the square root of the median fragment's area."""
MOST_CELLS: Final = 200
"""Along the longer side of any one fragment."""
MARGIN: Final = 0.3
"""What a raster knows around its fragment, in units of the median fragment's size."""
INNER: Final = 160
"""About how many points stand for a fragment's area."""


class Contacts(NamedTuple):
    """Samples of one fragment and the nearest samples of another.

    Shapes: all (M,). pair: row of the pairs asked for; s, t: sample numbers; distance: of s from the outline at t along
    t's normal, positive outside; facing: -cos of the angle between the two normals, 1 where they face each other.
    """

    pair: Ints
    s: Ints
    t: Ints
    distance: Floats
    facing: Floats


@dataclass(frozen=True, eq=False)
class Shapes:
    """The rasters of N fragments, R cells and P inner points in all.

    Attributes:
        outlines: what they were made from.
        area: (N,) px^2.
        centre, radius: (N, 2), (N,) of a circle around each fragment, in its frame.
        reach: px that a raster knows around its fragment.
        cell: (N,) px.
        low: (N, 2) corner of each raster, (x, y) in the fragment's frame.
        shape: (N, 2) rows and columns.
        first: (N,) of each raster in the flat arrays.
        depth: (R,) float32 signed distance, px, negative inside.
        nearest: (R,) int32 sample number.
        inner: (P, 2) points inside; inner_depth (P,); inner_start (N + 1,).
    """

    outlines: Outlines
    area: Floats
    centre: Floats
    radius: Floats
    reach: float
    cell: Floats
    low: Floats
    shape: Ints
    first: Ints
    depth: NDArray[np.float32]
    nearest: NDArray[np.int32]
    inner: Floats
    inner_depth: NDArray[np.float32]
    inner_start: Ints

    @classmethod
    def of(cls, outlines: Outlines) -> Shapes:
        """Rasters of closed outlines; a fragment of fewer than three samples has an empty one."""
        area = np.array([_area(outlines.of(i)) for i in range(outlines.n)])
        typical = float(np.sqrt(np.median(area[area > 0]))) if (area > 0).any() else 1.0
        reach = MARGIN * typical
        made = [_raster(outlines, i, typical / CELLS, reach) for i in range(outlines.n)]
        count = np.array([raster.depth.size for raster in made], dtype=np.int64)
        inner_count = [len(raster.inner) for raster in made]
        return cls(
            outlines,
            area,
            np.array([raster.centre for raster in made]),
            np.array([raster.radius for raster in made]),
            reach,
            np.array([raster.cell for raster in made]),
            np.array([raster.low for raster in made]),
            np.array([raster.depth.shape for raster in made], dtype=np.int64),
            np.cumsum(count) - count,
            np.concatenate([raster.depth.ravel() for raster in made]),
            np.concatenate([raster.nearest.ravel() for raster in made]),
            np.concatenate([raster.inner for raster in made]),
            np.concatenate([raster.inner_depth for raster in made]),
            np.concatenate([[0], np.cumsum(inner_count)]),
        )

    @cached_property
    def rasters(self) -> Kept:
        """The same arrays for the compiled routines."""
        outlines = self.outlines
        return Kept(
            outlines.step,
            start=outlines.start,
            xy=outlines.xy,
            normal=outlines.normal,
            low=self.low,
            cell=self.cell,
            shape=self.shape,
            first=self.first,
            depth=self.depth,
            nearest=self.nearest,
            inner_at=self.inner_start,
            inner=self.inner,
            inner_depth=self.inner_depth,
        )

    @cached_property
    def owner(self) -> Ints:
        """(T,) the fragment of each sample."""
        return self.outlines.owner

    @cached_property
    def size(self) -> float:
        """Square root of the median area: the unit of every length that is a matter of taste."""
        return float(np.sqrt(np.median(self.area)))

    def near(self, pose: Floats, a: Ints, b: Ints, reach: float) -> NDArray[np.bool_]:
        """Could fragments a and b come within `reach` of each other? Shapes: pose (N, 3), a and b (K,) -> (K,)."""
        at = motion.apply(pose, self.centre)
        return np.asarray(np.hypot(*(at[a] - at[b]).T) < self.radius[a] + self.radius[b] + reach)

    def cells_of(self, fragment: Ints, points: Floats) -> Ints:
        """The raster cell of points in the fragments' frames; -1 off the raster. Shapes: (K,), (K, 2) -> (K,)."""
        at = np.floor((points - self.low[fragment]) / self.cell[fragment][:, None]).astype(np.int64)
        col, row = at[:, 0], at[:, 1]
        rows, cols = self.shape[fragment].T
        on = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
        return np.where(on, self.first[fragment] + row * cols + col, -1)

    def overlap(self, a: Ints, b: Ints, a_from_b: Floats, slack: float) -> Floats:
        """Share of the smaller fragment's area that lies deeper than `slack` in both. Shapes: (K,), (K, 3) -> (K,)."""
        swap = self.area[a] > self.area[b]
        small, large = np.where(swap, b, a), np.where(swap, a, b)
        large_from_small = np.where(swap[:, None], a_from_b, motion.inverse(a_from_b))
        pairs = Pairs(small, large, np.zeros((len(a), 3)), motion.inverse(large_from_small))
        return overlap(self.rasters, pairs, slack)

    def contacts(self, a: Ints, b: Ints, a_from_b: Floats, reach: float) -> Contacts:
        """Where a's samples come within `reach` of b's outline. Shapes: (K,), (K,), (K, 3)."""
        start, b_from_a = self.outlines.start, motion.inverse(a_from_b)
        row = np.repeat(np.arange(len(a)), np.diff(start)[a])
        s = samples_of(start, a)
        points = motion.apply(b_from_a[row], self.outlines.xy[s])
        cell = self.cells_of(b[row], points)
        close = cell >= 0
        close[close] = np.abs(self.depth[cell[close]]) < reach + self.cell[b[row[close]]]
        row, s, points = row[close], s[close], points[close]
        t = self._refine(self.nearest[cell[close]].astype(np.int64), b[row], points)
        normal = self.outlines.normal[t]
        off = points - self.outlines.xy[t]
        distance = np.einsum("kx,kx->k", off, normal)
        along = np.hypot(*(off - distance[:, None] * normal).T)
        turned = motion.apply(b_from_a[row] * np.array([0.0, 0.0, 1.0]), self.outlines.normal[s])
        facing = -np.einsum("kx,kx->k", turned, normal)
        good = (np.abs(distance) < reach) & (along < self.outlines.step)
        return Contacts(row[good], s[good], t[good], distance[good], facing[good])

    def _refine(self, t: Ints, fragment: Ints, points: Floats) -> Ints:
        """The nearest sample among t and the two on either side of it."""
        start, count = self.outlines.start[fragment], np.diff(self.outlines.start)[fragment]
        around = start[:, None] + (t[:, None] - start[:, None] + np.arange(-2, 3)) % count[:, None]
        gap = self.outlines.xy[around] - points[:, None]
        best = np.argmin(gap[..., 0] ** 2 + gap[..., 1] ** 2, axis=1)
        return np.asarray(around[np.arange(len(t)), best])


class _Raster(NamedTuple):
    centre: Floats
    radius: float
    cell: float
    low: Floats
    depth: NDArray[np.float32]
    nearest: NDArray[np.int32]
    inner: Floats
    inner_depth: NDArray[np.float32]


def _area(outline: Floats) -> float:
    x, y = outline.T
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def _raster(outlines: Outlines, i: int, cell: float, reach: float) -> _Raster:
    """One fragment's raster: the outline drawn, and the distance of every cell to it."""
    outline = outlines.of(i)
    if len(outline) < 3:
        nothing = np.zeros((0, 2)), np.zeros(0, np.float32)
        flat = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int32)
        return _Raster(np.zeros(2), 0.0, cell, np.full(2, np.inf), *flat, *nothing)
    least, most = outline.min(axis=0), outline.max(axis=0)
    cell = max(cell, float((most - least).max()) / MOST_CELLS)
    low = least - reach - cell
    cols, rows = (np.ceil((most + reach + cell - low) / cell)).astype(int)
    drawn = (outline - low) / cell
    mask = np.zeros((rows, cols), np.uint8)
    cv2.fillPoly(mask, [np.round((drawn - 0.5) * 16).astype(np.int32)], 1, shift=4)
    row, col = drawn[:, 1].astype(int), drawn[:, 0].astype(int)
    off = np.ones((rows, cols), np.uint8)
    off[row, col] = 0
    _, label = cv2.distanceTransformWithLabels(off, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    sample = np.zeros(int(label.max()) + 1, np.int64)
    sample[label[row, col]] = np.arange(len(outline))
    nearest = sample[label]
    x, y = (np.arange(cols) + 0.5) * cell + low[0], (np.arange(rows) + 0.5) * cell + low[1]
    far = np.hypot(outline[nearest, 0] - x, outline[nearest, 1] - y[:, None])
    depth = np.where(mask > 0, -far, far).astype(np.float32)
    centre = (least + most) / 2
    every = max(1, round(float(np.sqrt(mask.sum() / INNER))))
    kept = np.zeros_like(mask)
    kept[every // 2 :: every, every // 2 :: every] = 1
    rows_in, cols_in = np.nonzero(mask & kept)
    inner = np.stack([x[cols_in], y[rows_in]], axis=1)
    radius = float(np.hypot(*(outline - centre).T).max())
    nearest = (nearest + outlines.start[i]).astype(np.int32)
    return _Raster(centre, radius, cell, low, depth, nearest, inner, depth[rows_in, cols_in])
