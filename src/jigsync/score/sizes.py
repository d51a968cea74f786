"""How large fragments are: tolerances of positions are shares of sqrt(opaque area)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from jigsync.values.placement import Pitch
from jigsync.values.puzzle import Puzzle

LEAST: Final = 1.0
"""Of a fragment with next to nothing on it, px."""


def sizes_of(puzzle: Puzzle) -> dict[str, float]:
    """id -> sqrt(sum of alpha / 255), in pixels."""
    areas = (int(pixels[..., 3].sum(dtype=np.int64)) / 255 for pixels in puzzle.fragments.pixels)
    return {name: max(LEAST, math.sqrt(area)) for name, area in zip(puzzle.ids, areas, strict=True)}


def sizes_of_cells(names: Iterable[str], pitch: Pitch) -> Mapping[str, float]:
    """What `sizes_of` comes to where fragments fill the cells of a grid: sqrt(height width) for all."""
    return dict.fromkeys(names, math.sqrt(pitch[0] * pitch[1]))
