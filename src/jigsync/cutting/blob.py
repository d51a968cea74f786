"""The `gap` preset's masks: square cells with one smooth blob inside each, in the manner of the GAP data sets.

    r(theta) = h(theta) (1 - 0.45 (0.5 + 0.5 eta(theta)))

h is the superellipse |x|^4 + |y|^4 = (P/2)^4 and eta periodic Perlin noise. Imitates the form of that benchmark; its
numbers are never called GAP.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.erosion import perlin
from jigsync.cutting.raster import snap

POINTS: Final = 256
DEPTH: Final = 0.45
LATTICE: Final = 5


def blob_outline(cell: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A closed curve inside a cell, clockwise as displayed.

    Shapes: -> (256, 2) as (x, y), pixels from the cell's corner.
    """
    s = np.arange(POINTS) / POINTS
    angle = 2 * np.pi * s  # x right, y down: growing angles run clockwise as displayed
    x, y = np.cos(angle), np.sin(angle)
    radius = cell / 2 / (np.abs(x) ** 4 + np.abs(y) ** 4) ** 0.25
    radius = radius * (1 - DEPTH * (0.5 + 0.5 * perlin(s, LATTICE, rng)))
    return snap(np.stack([cell / 2 + radius * x, cell / 2 + radius * y], axis=1))
