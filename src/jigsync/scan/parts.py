"""A mask of everything that is not background -> one mask a fragment.

Holes are filled (a fragment may show the background's colour), specks of dust are dropped, and parts that are too
large or too hollow for one fragment are cut at their necks: with D the distance to the background, two cores of
{D > neck max D} are two fragments that touch, and a watershed on D parts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.uint8]
"""(H, W), 1 inside."""

DUST: Final = 0.05
"""Parts of less than this share of a usual fragment are dust."""
FEWEST_PIXELS: Final = 64
LARGE: Final = 1.5
"""Parts of more than so many usual fragments are looked at for necks."""
SOLID: Final = 0.75
"""... and parts that fill less than this share of their convex hull."""
NECKS: Final = (0.6, 0.7, 0.8, 0.9)
"""A neck is at most this share as wide as the fragments it joins; the wider ones only where the area asks for it."""
THIN: Final = 0.35
"""... and this for parts of a usual area that are hollow."""
EVEN: Final = 0.35
"""Of a hollow part, each half has at least this share."""
LEVELS: Final = 24
LEAST_SHARE: Final = 0.25
"""A cut may not leave a fragment of less than this share of a usual one."""


@dataclass(frozen=True, eq=False)
class Part:
    """One fragment in the scan.

    Attributes:
        top, left: of its box in the scan.
        mask: (h, w) of its box, one pixel of margin inside it.
        notes: what a person should know about it, sentences without a full stop.
    """

    top: int
    left: int
    mask: Mask
    notes: tuple[str, ...] = ()

    @property
    def area(self) -> int:
        """Pixels."""
        return int(np.count_nonzero(self.mask))

    @property
    def middle(self) -> tuple[float, float]:
        """(row, col) of the box's centre in the scan."""
        height, width = self.mask.shape
        return self.top + height / 2, self.left + width / 2


def find_parts(foreground: Mask) -> tuple[list[Part], int]:
    """(fragments in reading order, number of specks dropped). Shapes: foreground (H, W)."""
    mask = _tidy(foreground)
    whole = _components(mask)
    least = max(DUST * _main_area([part.area for part in whole]), FEWEST_PIXELS)
    kept = [part for part in whole if part.area >= least]
    # The lower median: where half of the parts are pairs that touch, it is still one fragment's area.
    usual = float(sorted(part.area for part in kept)[(len(kept) - 1) // 2]) if kept else 0.0
    specks = len(whole) - len(kept)
    parts = [single for part in kept for single in _separate(part, usual)]
    return _reading_order([_noted(part, usual, mask.shape) for part in parts]), specks


def _tidy(foreground: Mask) -> Mask:
    """Removes hairs and salt and pepper."""
    radius = max(1, round(min(foreground.shape) / 1000))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    closed = cv2.morphologyEx(foreground, cv2.MORPH_CLOSE, kernel)
    return np.asarray(cv2.morphologyEx(closed, cv2.MORPH_OPEN, kernel), dtype=np.uint8)


def _components(mask: Mask) -> list[Part]:
    """The connected parts that are not inside another one, each with its holes filled."""
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    parts = []
    for outline in outlines:
        left, top, width, height = cv2.boundingRect(outline)
        left, top = left - 1, top - 1
        filled = np.zeros((height + 2, width + 2), dtype=np.uint8)
        cv2.drawContours(filled, [outline], -1, 1, cv2.FILLED, offset=(-left, -top))
        parts.append(Part(top, left, filled))
    return parts


def _main_area(areas: list[int]) -> float:
    """The area at which half of all foreground lies in parts that are no smaller: dust cannot move it."""
    if not areas:
        return 0.0
    falling = np.sort(np.array(areas))[::-1]
    half = np.searchsorted(np.cumsum(falling), falling.sum() / 2)
    return float(falling[min(int(half), len(falling) - 1)])


def _separate(part: Part, usual: float) -> list[Part]:
    """The part itself, or the fragments that touch in it: as many as its area is worth, at the narrowest necks."""
    outline = max(cv2.findContours(part.mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=len)
    large = part.area > LARGE * usual
    if not large and part.area >= SOLID * cv2.contourArea(cv2.convexHull(outline)):
        return [part]
    # A hollow part of usual area may be one torn fragment, or two where most lie in pairs: only a thin neck tells.
    least_of_all = 0.0 if large else EVEN * part.area
    depth = np.asarray(cv2.distanceTransform(part.mask, cv2.DIST_L2, 5), dtype=np.float32)
    wanted = max(2, round(part.area / usual))
    best = [part]
    for neck in NECKS if large else (THIN,):
        number, cores = cv2.connectedComponents((depth > neck * depth.max()).astype(np.uint8))
        if number - 1 <= len(best):
            continue
        owner = _spread(cores.astype(np.int32), depth, neck)
        found = [single for k in range(1, number) for single in _components((owner == k).astype(np.uint8))]
        found = [single for single in found if single.area >= FEWEST_PIXELS]
        # The usual area may itself be that of fragments that touch: a share of the largest guards against slivers.
        least = max(least_of_all, LEAST_SHARE * min(usual, max((single.area for single in found), default=0)))
        if len(found) <= len(best) or any(single.area < least for single in found):
            continue
        best = [
            Part(part.top + single.top, part.left + single.left, single.mask, ("touched another fragment",))
            for single in found
        ]
        if len(best) >= wanted:
            break
    return best


def _spread(cores: NDArray[np.int32], depth: NDArray[np.float32], neck: float) -> NDArray[np.int32]:
    """Cores grow down the slopes of D, level by level, each pixel to the nearest core: a watershed without plateaus.

    Shapes: cores (H, W), 0 outside the cores; -> (H, W), 0 outside the part.
    """
    owner = cores
    for level in np.linspace(neck, 0, LEVELS + 1)[1:] * float(depth.max()):
        _, nearest = cv2.distanceTransformWithLabels(
            (owner == 0).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
        )
        name_of = np.zeros(int(nearest.max()) + 1, dtype=np.int32)
        name_of[nearest[owner > 0]] = owner[owner > 0]
        owner = np.where((owner == 0) & (depth > level), name_of[nearest], owner)
    return owner


def _noted(part: Part, usual: float, shape: tuple[int, ...]) -> Part:
    notes = list(part.notes)
    if part.area > 1.8 * usual:
        notes.append(f"has {part.area / usual:.1f} times the usual area: perhaps fragments that touch along a side")
    rows, cols = part.mask.shape
    if part.top < 0 or part.left < 0 or part.top + rows > shape[0] or part.left + cols > shape[1]:
        notes.append("reaches the edge of the scan and may be cut off")
    return Part(part.top, part.left, part.mask, tuple(notes))


def _reading_order(parts: list[Part]) -> list[Part]:
    """Row by row, left to right; a row is what begins above the middle of its first fragment's box."""
    left = sorted(parts, key=lambda part: part.middle[0])
    ordered = []
    while left:
        bottom = left[0].middle[0] + left[0].mask.shape[0] / 2
        row = [part for part in left if part.middle[0] < bottom]
        ordered += sorted(row, key=lambda part: part.middle[1])
        left = left[len(row) :]
    return ordered
