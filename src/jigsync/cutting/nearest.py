"""The nearest of a few sites, for many points at once: Voronoi cells at any resolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, cKDTree

STEPS: Final = 32
"""Points of the look-up table along the size of a cell."""
FEW: Final = 8
"""So many sites are simply all neighbours of each other."""

Floats = NDArray[np.float32]
Sites = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NearestSite:
    """Finds the nearest site of points in and around a picture.

    A table holds the nearest site of points in even steps. Cells of sites are convex: where all four corners of a
    table's square have one site, so has everything inside. Elsewhere the site is that of a corner or a neighbour of it.

    Attributes:
        xy: (N, 2) float32, the sites.
        step, origin: of the table's points, px; the same along x and y.
        table: (R, C) the site of the upper left corner of each square.
        pure: (R, C) all four corners have it.
        around: (N, K) every site, then its Delaunay neighbours, filled up with itself.
    """

    xy: Floats
    step: float
    origin: float
    table: NDArray[np.int32]
    pure: NDArray[np.bool_]
    around: NDArray[np.int32]

    @classmethod
    def of(cls, sites: Sites, shape: tuple[int, int], size: float, reach: float) -> NearestSite:
        """The sites of a picture, for points up to `reach` px outside of it; `size` is that of a site's cell.

        Shapes: sites (N, 2) as (x, y).
        """
        step = size / STEPS
        rows, cols = (int((side + 2 * reach) / step) + 2 for side in shape)
        y, x = np.meshgrid(np.arange(rows) * step - reach, np.arange(cols) * step - reach, indexing="ij")
        nearest = cKDTree(sites).query(np.stack([x, y], axis=-1))[1].astype(np.int32)
        corner = nearest[:-1, :-1]
        pure = (corner == nearest[1:, :-1]) & (corner == nearest[:-1, 1:]) & (corner == nearest[1:, 1:])
        return cls(sites.astype(np.float32), step, -reach, corner.copy(), pure, _neighbours(sites))

    def __call__(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """Shapes: x, y (M,) -> (M,) site numbers."""
        rows, cols = self.table.shape
        scale, shift = np.float32(1 / self.step), np.float32(-self.origin / self.step)
        at = np.clip((y * scale + shift).astype(np.int32), 0, rows - 1) * np.int32(cols)
        at += np.clip((x * scale + shift).astype(np.int32), 0, cols - 1)
        found = self.table.ravel()[at]
        close = np.flatnonzero(~self.pure.ravel()[at])
        px, py, guess = x[close], y[close], found[close]
        best, least = guess.copy(), np.full(len(close), np.inf, dtype=np.float32)
        for column in self.around.T:
            site = column[guess]
            dx, dy = px - self.xy[:, 0][site], py - self.xy[:, 1][site]
            dx *= dx
            dy *= dy
            dx += dy
            nearer = dx < least
            np.copyto(best, site, where=nearer)
            np.copyto(least, dx, where=nearer)
        found[close] = best
        return found


def _neighbours(sites: Sites) -> NDArray[np.int32]:
    count = len(sites)
    if count <= FEW:
        return np.tile(np.arange(count, dtype=np.int32), (count, 1))
    start, flat = Delaunay(sites).vertex_neighbor_vertices
    out = np.repeat(np.arange(count, dtype=np.int32)[:, None], 1 + int(np.diff(start).max()), axis=1)
    for k in range(count):
        out[k, 1 : 1 + start[k + 1] - start[k]] = flat[start[k] : start[k + 1]]
    return out
