"""Pieces of a picture before anything is damaged: who owns every pixel, with antialiased masks that sum to 255."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects

from jigsync.cutting.masks import Mask
from jigsync.values.layout import FREE, Layout
from jigsync.values.placement import Pitch

SAMPLES: Final = 15
"""Of a pixel that a seam crosses; 255 / 15 is whole, so alphas sum exactly."""
CONTACT: Final = 0.05
LEAST_CONTACT: Final = 3
"""Two pieces touch where their seam is at least so long: a share of the piece's size, and pixels."""

Pair = tuple[int, int]
Owner = NDArray[np.int32]
Box = tuple[slice, slice]


@dataclass(frozen=True, eq=False)
class Pieces:
    """A picture divided into N pieces.

    Attributes:
        owner: (H, W) int32, the piece that each pixel belongs to.
        masks: of every piece, its box in the picture; all alphas of a pixel sum to 255.
        layout: the grid of the pieces in slot order, or free.
        pitch: of the grid's cells in pixels.
    """

    owner: Owner
    masks: tuple[Mask, ...]
    layout: Layout = FREE
    pitch: Pitch | None = None


def contacts(owner: Owner, size: int) -> list[Pair]:
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


def seams(owner: Owner) -> NDArray[np.uint8]:
    """1 where one of a pixel's four neighbours has another owner. Shapes: (H, W) -> (H, W)."""
    seam = np.zeros(owner.shape, dtype=np.uint8)
    across, down = owner[:, :-1] != owner[:, 1:], owner[:-1] != owner[1:]
    seam[:, :-1] |= across
    seam[:, 1:] |= across
    seam[:-1] |= down
    seam[1:] |= down
    return seam


def join_islands(owner: Owner, count: int) -> list[Box | None]:
    """Makes every piece one part; returns a box around each, None for a piece that owns nothing.

    All but the largest part of a piece goes to the neighbour around most of it. Every such gift joins two parts to
    one, so this ends.

    Shapes: owner (H, W), changed in place.
    """
    boxes: list[Box | None] = find_objects(owner + 1, count)
    todo = set(range(count))
    while todo:
        changed = set()
        for piece in sorted(todo):
            box = boxes[piece]
            if box is None:
                continue
            top, left = max(0, box[0].start - 1), max(0, box[1].start - 1)
            part = owner[top : box[0].stop + 1, left : box[1].stop + 1]
            number, parts, stats, _ = cv2.connectedComponentsWithStats(
                (part == piece).astype(np.uint8), connectivity=4, ltype=cv2.CV_32S
            )
            if number <= 2:
                continue
            found = [_box(*(int(value) for value in row[:4])) for row in stats]
            largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
            boxes[piece] = _moved(found[largest], top, left)
            for stray in set(range(1, number)) - {largest}:
                rows, cols = found[stray]
                around = slice(max(0, rows.start - 1), rows.stop + 1), slice(max(0, cols.start - 1), cols.stop + 1)
                island = parts[around] == stray
                ring = cv2.dilate(island.astype(np.uint8), cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))) > 0
                heir = int(np.argmax(np.bincount(part[around][ring & ~island])))
                part[around][island] = heir
                boxes[heir] = _joined(boxes[heir], _moved(found[stray], top, left))
                changed.add(heir)
        todo = changed
    return boxes


def _box(left: int, top: int, width: int, height: int) -> Box:
    return slice(top, top + height), slice(left, left + width)


def _moved(box: Box, top: int, left: int) -> Box:
    rows, cols = box
    return slice(rows.start + top, rows.stop + top), slice(cols.start + left, cols.stop + left)


def _joined(one: Box | None, other: Box) -> Box:
    if one is None:
        return other
    rows, cols = (slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(one, other, strict=True))
    return rows, cols


def counted_masks(
    owner: Owner, boxes: list[Box | None], rows: NDArray[np.int64], cols: NDArray[np.int64], samples: NDArray[np.int32]
) -> tuple[Mask, ...]:
    """Alpha of every piece: 255 in its own pixels, and its share of the samples in pixels that a seam crosses.

    A sample counts for its piece if that owns the pixel or one of the pixel's four neighbours, and for the pixel's
    owner otherwise. So what a piece has of any pixel is connected to the pixels that it owns.

    Shapes: owner (H, W), rows, cols (B,) the crossed pixels, samples (B, SAMPLES).
    """
    ordered = np.sort(_known(owner, rows, cols, samples), axis=1)
    first = np.ones(ordered.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.flatnonzero(first)
    share = np.diff(np.append(start, ordered.size)).astype(np.uint8) * np.uint8(255 // SAMPLES)
    piece, pixel = ordered.ravel()[start], start // SAMPLES
    by_piece = np.argsort(piece, kind="stable")
    bounds = np.searchsorted(piece[by_piece], np.arange(len(boxes) + 1))
    height, width = owner.shape
    masks = []
    for k, box in enumerate(boxes):
        if box is None:
            masks.append(Mask(0, 0, np.zeros((1, 1), dtype=np.uint8)))
            continue
        top, left = max(0, box[0].start - 1), max(0, box[1].start - 1)
        bottom, right = min(height, box[0].stop + 1), min(width, box[1].stop + 1)
        alpha = (owner[top:bottom, left:right] == k).astype(np.uint8) * np.uint8(255)
        mine = by_piece[bounds[k] : bounds[k + 1]]
        # The owner of a crossed pixel has its centre, which is one of the samples: every such pixel is set here.
        alpha[rows[pixel[mine]] - top, cols[pixel[mine]] - left] = share[mine]
        masks.append(Mask(top, left, alpha))
    return tuple(masks)


def _known(
    owner: Owner, rows: NDArray[np.int64], cols: NDArray[np.int64], samples: NDArray[np.int32]
) -> NDArray[np.int32]:
    height, width = owner.shape
    own = owner[rows, cols][:, None]
    known = samples == own
    for d_row, d_col in ((0, 1), (-1, 0), (0, -1), (1, 0)):
        known |= samples == owner[np.clip(rows + d_row, 0, height - 1), np.clip(cols + d_col, 0, width - 1)][:, None]
    return np.where(known, samples, own)
