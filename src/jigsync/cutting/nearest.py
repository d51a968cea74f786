"""The nearest of a few sites, for many points at once: Voronoi cells at any resolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

STEPS: Final = 16
"""Squares of the look-up table along the size of a cell."""
RIVALS: Final = 4
"""Sites that may be the nearest one inside a square: it is too small for a fifth."""

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class NearestSite:
    """Finds the nearest site of points in and around a picture, by a table of small squares.

    Cells of sites are convex: where all four corners of a square have one nearest site, so has everything inside.

    Attributes:
        xy: (N, 2) float32, the sites.
        step, origin: side of the squares and where the first one starts, px; the same along x and y.
        table: (R, C) the site of each square, or -1 - row of `rivals`.
        rivals: (M, RIVALS) the sites nearest to the middle of a square with several.
    """

    xy: Floats
    step: float
    origin: float
    table: Ints
    rivals: Ints

    @classmethod
    def of(cls, sites: NDArray[np.float64], shape: tuple[int, int], size: float, reach: float) -> NearestSite:
        """The sites of a picture, for points up to `reach` px outside of it; `size` is that of a site's cell.

        Shapes: sites (N, 2) as (x, y).
        """
        step, tree = size / STEPS, cKDTree(sites)
        rows, cols = (int((side + 2 * reach) / step) + 2 for side in shape)
        y, x = np.meshgrid(np.arange(rows) * step - reach, np.arange(cols) * step - reach, indexing="ij")
        corners = np.stack([x, y], axis=-1)
        nearest = np.asarray(tree.query(corners)[1], dtype=np.int32)
        table = nearest[:-1, :-1].copy()
        mixed = (table != nearest[1:, :-1]) | (table != nearest[:-1, 1:]) | (table != nearest[1:, 1:])
        table[mixed] = -1 - np.arange(mixed.sum())
        few = list(range(1, min(RIVALS, len(sites)) + 1))
        rivals = np.asarray(tree.query(corners[:-1, :-1][mixed] + step / 2, k=few)[1], dtype=np.int32)
        return cls(sites.astype(np.float32), step, -reach, table, rivals)

    def __call__(self, x: Floats, y: Floats) -> Ints:
        """Shapes: x, y (M,) -> (M,) site numbers."""
        rows, cols = self.table.shape
        scale, shift = np.float32(1 / self.step), np.float32(-self.origin / self.step)
        at = np.clip((y * scale + shift).astype(np.int32), 0, rows - 1) * np.int32(cols)
        at += np.clip((x * scale + shift).astype(np.int32), 0, cols - 1)
        found: Ints = self.table.ravel()[at]
        close = np.flatnonzero(found < 0)
        px, py, row = x[close], y[close], -1 - found[close]
        best, least = np.zeros(len(close), dtype=np.int32), np.full(len(close), np.inf, dtype=np.float32)
        for rival in self.rivals.T:
            site = rival[row]
            dx, dy = px - self.xy[:, 0][site], py - self.xy[:, 1][site]
            dx *= dx
            dy *= dy
            dx += dy
            nearer = dx < least
            np.copyto(best, site, where=nearer)
            np.copyto(least, dx, where=nearer)
        found[close] = best
        return found
