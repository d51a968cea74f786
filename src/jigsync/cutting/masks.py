"""Stages 2 to 4 for a whole grid: fracture or blob, alpha, erosion, and the area floor with its redraws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.blob import blob_outline
from jigsync.cutting.erosion import erode
from jigsync.cutting.fracture import Tessellation, tessellate
from jigsync.cutting.options import CutOptions
from jigsync.cutting.raster import coverage
from jigsync.cutting.streams import Stage, stream

AREA_FLOOR: Final = 0.40
"""A puzzle with a fragment below this share of its cell's area is drawn again."""


@dataclass(frozen=True)
class Mask:
    """Alpha of one fragment, cut to the box it needs.

    Attributes:
        top, left: the box's corner in the upright container, or in the picture of a torn puzzle.
        alpha: (h, w) uint8.
    """

    top: int
    left: int
    alpha: NDArray[np.uint8]

    @property
    def area(self) -> float:
        """Opaque area in pixels."""
        return float(self.alpha.sum(dtype=np.int64)) / 255


@dataclass(frozen=True)
class Masks:
    """All masks of a puzzle in slot order.

    Attributes:
        seed: the seed that was kept, the requested one plus `redraws`.
        area_floor: False when some fragment stayed below the floor after the last redraw.
    """

    masks: tuple[Mask, ...]
    seed: int
    redraws: int
    area_floor: bool


def draw_masks(options: CutOptions, seed: int, redraw: bool = True) -> Masks:
    """Masks that respect the area floor: redrawn with seed + 1 up to max(20, 8 n) times, then kept and flagged.

    Without `redraw` the first draw is kept: large severe grids hardly ever pass, and training needs many of them.
    """
    floor = AREA_FLOOR * options.cell**2
    redraws = max(20, 8 * max(options.grid.shape)) if redraw else 0
    for attempt in range(redraws + 1):
        masks = _attempt(options, seed + attempt, floor, keep=attempt == redraws)
        if masks is not None:
            good = all(mask.area >= floor for mask in masks)
            return Masks(masks, seed + attempt, attempt, good)
    raise AssertionError("the last attempt is always kept")


def _attempt(options: CutOptions, seed: int, floor: float, keep: bool) -> tuple[Mask, ...] | None:
    """One draw; None as soon as a fragment falls below the floor, unless it has to be kept."""
    tessellation = tessellate(options, stream(seed, Stage.FRACTURE)) if options.preset == "fracture" else None
    masks = []
    for slot, (row, col) in enumerate(options.grid.cells()):
        mask = _mask(options, tessellation, seed, slot, row, col)
        if mask.area < floor and not keep:
            return None
        masks.append(mask)
    return tuple(masks)


def _mask(options: CutOptions, tessellation: Tessellation | None, seed: int, slot: int, row: int, col: int) -> Mask:
    cell, margin = options.cell, options.margin
    if tessellation is None:
        outline = blob_outline(cell, stream(seed, Stage.BLOB, slot))
    else:
        outline = tessellation.outline(row, col) - np.array([col * cell - margin, row * cell - margin])
    mask = covered(outline)
    if options.damage.erosion > 0:
        local = outline - np.array([mask.left, mask.top])
        rng = stream(seed, Stage.EROSION, slot)
        mask = replace(mask, alpha=erode(mask.alpha, local, options.damage.erosion, cell, rng))
    return mask


def covered(outline: NDArray[np.float64]) -> Mask:
    """The mask of a simple closed curve. Shapes: (M, 2) as (x, y), pixels."""
    left, top = np.floor(outline.min(axis=0)).astype(np.int64)
    right, bottom = np.ceil(outline.max(axis=0)).astype(np.int64)
    return Mask(int(top), int(left), coverage(outline - np.array([left, top]), int(bottom - top), int(right - left)))
