"""Pieces of a picture before anything is damaged: who owns every pixel, with antialiased masks that sum to 255."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.masks import Mask
from jigsync.values.layout import FREE, Layout
from jigsync.values.placement import Pitch

CONTACT: Final = 0.05
LEAST_CONTACT: Final = 3
"""Two pieces touch where their seam is at least so long: a share of the piece's size, and pixels."""

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Pieces:
    """A picture divided into N pieces.

    Attributes:
        owner: (H, W) int32, the piece that holds most of each pixel.
        masks: of every piece, its box in the picture; all alphas of a pixel sum to 255.
        layout: the grid of the pieces in slot order, or free.
        pitch: of the grid's cells in pixels.
    """

    owner: NDArray[np.int32]
    masks: tuple[Mask, ...]
    layout: Layout = FREE
    pitch: Pitch | None = None


def contacts(owner: NDArray[np.int32], size: int) -> list[Pair]:
    """The pairs (a, b), a < b, that share a seam, in order: at least `CONTACT` of a piece's size and 3 px long.

    The length of a seam is counted in pixel sides.

    Shapes: owner (H, W).
    """
    count = int(owner.max()) + 1
    keys = []
    for one, other in ((owner[:, :-1], owner[:, 1:]), (owner[:-1], owner[1:])):
        seam = one != other
        a, b = one[seam].astype(np.int64), other[seam].astype(np.int64)
        keys.append(np.minimum(a, b) * count + np.maximum(a, b))
    pairs, length = np.unique(np.concatenate(keys), return_counts=True)
    long = pairs[length >= max(LEAST_CONTACT, CONTACT * size)]
    return [(int(key) // count, int(key) % count) for key in long]
