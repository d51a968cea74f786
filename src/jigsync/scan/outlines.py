"""Outlines of fragments in a photograph: found, put right by a person, and cut along.

An outline is a polygon in pixels of the photograph, (x, y), closed, without holes. What a person does to outlines is
done to masks in the box around them and traced again:

    merged     the union, closed where the parts lie apart
    split      the mask without a line drawn through it, its parts
    brushed    the mask with what a brush painted added, or taken away

Fragments stay as photographed: cutting along an outline resamples nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.scan.background import fit_background
from jigsync.scan.extract import cut_out
from jigsync.scan.parts import Mask, Part, find_parts
from jigsync.values.errors import ImageError, InputError
from jigsync.values.puzzle import Fragments, Puzzle

Outline = NDArray[np.float64]
"""(K, 2), K >= 3."""

SMOOTH: Final = 0.7
"""Pixels that a traced outline may be off its mask."""
SEE_THROUGH: Final = 0.02
"""Share of a picture that is transparent where its transparency is the background."""
LEAST_AREA: Final = 16
"""Pixels of a part that is kept."""
MARGIN: Final = 2


class Found(NamedTuple):
    """What a photograph shows.

    Attributes:
        outlines: one for each fragment, in reading order.
        notes: of each fragment, sentences without a full stop.
        specks: parts that were too small to be fragments.
    """

    outlines: list[Outline]
    notes: list[tuple[str, ...]]
    specks: int


def find_outlines(rgba: NDArray[np.uint8], name: str, background: tuple[int, int] | None = None) -> Found:
    """The outlines of what lies on the background.

    Args:
        rgba: the photograph; one with a transparent background is taken at its alpha.
        name: how messages call it.
        background: (x, y) of a pixel that a person says is background; None: told by the picture's frame.

    Raises:
        ImageError: there is no plain background, or nothing on it.
    """
    rgb = rgba[..., :3]
    see_through = rgba[..., 3] < 128
    if background is None and see_through.mean() > SEE_THROUGH:
        foreground = (~see_through).astype(np.uint8)
    else:
        at = None if background is None else _colour(rgb, background)
        foreground = fit_background(rgb, name, at).foreground(rgb)
        if background is not None:
            foreground = _inside(foreground)
    parts, specks = find_parts(foreground)
    if not parts:
        raise ImageError(f"No separate fragments were found in '{name}': nothing stands out from the background.")
    found = [(outline, part.notes) for part in parts if (outline := _outline_of(part)) is not None]
    return Found([outline for outline, _ in found], [notes for _, notes in found], specks)


def merged(outlines: Sequence[Outline]) -> Outline:
    """One outline around all; gaps between them are closed."""
    box = _box(outlines, grow=1.0)
    mask = _filled(outlines, box)
    reach = 1
    while cv2.connectedComponents(mask)[0] > 2:
        if reach > 2 * max(mask.shape):
            raise InputError("These outlines lie too far apart to be one fragment.")
        element = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach))
        # With room around: at its rim a closing would grow what it closes.
        closed = cv2.morphologyEx(np.pad(mask, reach), cv2.MORPH_CLOSE, element)[reach:-reach, reach:-reach]
        if cv2.connectedComponents(closed)[0] <= 2:
            mask = np.asarray(closed, dtype=np.uint8)
            break
        reach = 2 * reach + 1
    return _traced(mask, box)[0]


def split(outline: Outline, line: NDArray[np.float64]) -> list[Outline]:
    """The parts of an outline left and right of a line, which may bend; InputError when it does not go through."""
    box = _box([outline])
    mask = _filled([outline], box)
    cut = mask.copy()
    cv2.polylines(cut, [np.rint(line - box[:2]).astype(np.int32)], False, 0, 2)
    count, labels = cv2.connectedComponents(cut, connectivity=4)
    if count > 2:
        # What the line has taken goes to whichever part is nearest.
        _, nearest = cv2.distanceTransformWithLabels((labels == 0).astype(np.uint8), cv2.DIST_L2, 3)
        owner = np.zeros(int(nearest.max()) + 1, dtype=np.int32)
        owner[nearest[labels > 0]] = labels[labels > 0]
        labels = np.where(mask > 0, owner[nearest], 0)
    parts = [part for k in range(1, count) for part in _traced((labels == k).astype(np.uint8), box)[:1]]
    if len(parts) < 2:
        raise InputError("The line must go through the fragment, from outside to outside.")
    return sorted(parts, key=lambda part: float(part[:, 0].mean()))


def brushed(outline: Outline | None, stroke: NDArray[np.float64], radius: float, *, add: bool) -> list[Outline]:
    """An outline after a brush has added to it or taken from it; None adds a new one. Nothing may be left."""
    whole = [stroke] if outline is None else [outline, stroke]
    box = _box(whole, grow=radius)
    mask = _filled([] if outline is None else [outline], box)
    points = np.rint(stroke - box[:2]).astype(np.int32)
    width = max(1, round(2 * radius))
    cv2.polylines(mask, [points], False, int(add), width, cv2.LINE_8)
    for point in (points[0], points[-1]):
        cv2.circle(mask, (int(point[0]), int(point[1])), max(1, round(radius)), int(add), cv2.FILLED)
    parts = _traced(mask, box)
    return parts[:1] if add else parts


def tidied(outline: Outline) -> Outline:
    """An outline drawn by hand, its loops filled; InputError when there is nothing in it."""
    box = _box([outline])
    parts = _traced(_filled([outline], box), box)
    if not parts:
        raise InputError("What was drawn holds nothing: draw around the fragment.")
    return parts[0]


def cut_outlines(photographs: Sequence[tuple[NDArray[np.uint8], Sequence[Outline]]], name: str) -> Puzzle:
    """The puzzle of what lies within the outlines of one or several photographs, as photographed.

    Shapes: each photograph (H, W, 4).
    """
    pixels = [cut_out(rgba[..., :3], part) for rgba, outlines in photographs for part in map(_part, outlines)]
    if len(pixels) < 2:
        raise InputError(f"A puzzle needs at least two fragments. There are {len(pixels)} outlines.")
    digits = max(3, len(str(len(pixels) - 1)))
    return Puzzle(Fragments(tuple(f"f{k:0{digits}d}" for k in range(len(pixels))), tuple(pixels)), name=name)


def _part(outline: Outline) -> Part:
    """A polygon as a part of the photograph, with a margin of one pixel."""
    left, top, right, bottom = _box([outline])
    mask = _filled([outline], (left, top, right, bottom))
    if not mask.any():
        raise InputError("An outline holds nothing: drop it, or draw it anew.")
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    first = int(rows[0]) - 1, int(cols[0]) - 1
    inside = mask[first[0] : int(rows[-1]) + 2, first[1] : int(cols[-1]) + 2]
    return Part(top + first[0], left + first[1], np.ascontiguousarray(inside))


def _inside(foreground: Mask) -> Mask:
    """Without what reaches two sides of the picture: it lies around the background, not on it."""
    height, width = foreground.shape
    _, labels, stats, _ = cv2.connectedComponentsWithStats(foreground)
    left, top = stats[:, cv2.CC_STAT_LEFT], stats[:, cv2.CC_STAT_TOP]
    right, bottom = left + stats[:, cv2.CC_STAT_WIDTH], top + stats[:, cv2.CC_STAT_HEIGHT]
    sides = (left == 0).astype(int) + (top == 0) + (right == width) + (bottom == height)
    kept = sides < 2
    kept[0] = False
    return np.asarray(kept[labels], dtype=np.uint8)


def _colour(rgb: NDArray[np.uint8], at: tuple[int, int]) -> NDArray[np.uint8]:
    """The middle colour of a few pixels around one. Shapes: -> (K, 3)."""
    height, width = rgb.shape[:2]
    x, y = min(max(at[0], 0), width - 1), min(max(at[1], 0), height - 1)
    reach = max(2, round(0.004 * max(height, width)))
    return rgb[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1].reshape(-1, 3)


def _outline_of(part: Part) -> Outline | None:
    traced = _traced(part.mask, (part.left, part.top, 0, 0))
    return traced[0] if traced else None


def _box(outlines: Sequence[Outline], grow: float = 0.0) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) around outlines, with a margin."""
    points = np.concatenate(list(outlines))
    low = np.floor(points.min(axis=0) - grow).astype(int) - MARGIN
    high = np.ceil(points.max(axis=0) + grow).astype(int) + MARGIN + 1
    return int(low[0]), int(low[1]), int(high[0]), int(high[1])


def _filled(outlines: Sequence[Outline], box: tuple[int, int, int, int]) -> Mask:
    mask = np.zeros((box[3] - box[1], box[2] - box[0]), dtype=np.uint8)
    for outline in outlines:
        cv2.fillPoly(mask, [np.rint(outline - box[:2]).astype(np.int32)], 1)
    return mask


def _traced(mask: Mask, box: tuple[int, int, int, int]) -> list[Outline]:
    """The outlines of a mask's parts, the largest first; specks are dropped."""
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    smooth = [cv2.approxPolyDP(contour, SMOOTH, True)[:, 0] for contour in contours]
    kept = [c for c in smooth if len(c) >= 3 and cv2.contourArea(c) >= LEAST_AREA]
    kept.sort(key=lambda contour: -cv2.contourArea(contour))
    return [contour.astype(np.float64) + box[:2] for contour in kept]
