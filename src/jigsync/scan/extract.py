"""A scan of fragments on a plain background -> a puzzle, and what was done to get it.

    background -> parts -> skew of each, straightened -> fragments of one container size

The outermost pixel of a fragment mixes it with the background: it is taken off. Every fragment stands in the middle
of its container by the mean of its centroid and its box's centre, which is closest to the centre of its cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.io.puzzle_folder import premultiply
from jigsync.scan.background import fit_background
from jigsync.scan.parts import Part, find_parts
from jigsync.scan.skew import skew_of
from jigsync.values.errors import ImageError
from jigsync.values.puzzle import Fragments, Pixels, Puzzle

FORMAT: Final = "jigsync-extract/1"
MAX_FRAGMENTS: Final = 5000
SLIGHT: Final = 0.2
"""Skews below this, in degrees, are left alone: turning would blur more than it straightens."""


@dataclass(frozen=True)
class Extraction:
    """Where one fragment came from.

    Attributes:
        box: (top, left, height, width) in the scan, px.
        skew: degrees it lay turned counter-clockwise from its nearest right angle; None when its outline is too
            broken to tell.
        straightened: was it turned back by that?
        notes: sentences for a person.
    """

    box: tuple[int, int, int, int]
    skew: float | None
    straightened: bool
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        skew = None if self.skew is None else round(self.skew, 2)
        return {"box": list(self.box), "skew": skew, "straightened": self.straightened, "notes": list(self.notes)}


@dataclass(frozen=True, eq=False)
class Extracted:
    """A puzzle out of a scan.

    Attributes:
        puzzle: the fragments, ids in reading order of the scan.
        fragments: id -> where it came from.
        specks: parts that were too small to be fragments, left out.
    """

    puzzle: Puzzle
    fragments: dict[str, Extraction]
    specks: int

    def to_json(self) -> dict[str, Any]:
        """The value of extract.json."""
        found = {name: extraction.to_json() for name, extraction in self.fragments.items()}
        return {"format": FORMAT, "specks": self.specks, "fragments": found}


def extract_fragments(rgba: NDArray[np.uint8], name: str, *, straighten: bool = True) -> Extracted:
    """Cuts the fragments out of a scan.

    Args:
        rgba: the scan as `read_rgba` gives it; one with a transparent background is taken at its alpha.
        name: how messages call it.
        straighten: turn each fragment by its skew.

    Shapes: rgba (H, W, 4).

    Raises:
        ImageError: there is no plain background, or nothing on it.
    """
    rgb = rgba[..., :3]
    see_through = rgba[..., 3] < 128
    if see_through.mean() > 0.02:
        foreground = (~see_through).astype(np.uint8)
    else:
        foreground = fit_background(rgb, name).foreground(rgb)
    parts, specks = find_parts(foreground)
    if not parts:
        raise ImageError(f"No separate fragments were found in '{name}': nothing stands out from the background.")
    if len(parts) > MAX_FRAGMENTS:
        raise ImageError(f"The scan '{name}' must show at most {MAX_FRAGMENTS} fragments. It shows {len(parts)}.")
    cut, found = [], []
    for part in parts:
        skew = skew_of(part.mask)
        turn = straighten and skew is not None and abs(skew) >= SLIGHT
        pixels = cut_out(rgb, part)
        cut.append(_turned(pixels, skew) if turn and skew is not None else pixels)
        height, width = part.mask.shape
        found.append(Extraction((part.top + 1, part.left + 1, height - 2, width - 2), skew, turn, part.notes))
    ids = tuple(f"f{k:0{max(3, len(str(len(cut) - 1)))}d}" for k in range(len(cut)))
    squares, side = _in_containers(cut)
    return Extracted(Puzzle(Fragments(ids, squares), None, side), dict(zip(ids, found, strict=True)), specks)


def cut_out(rgb: NDArray[np.uint8], part: Part) -> Pixels:
    """Premultiplied pixels of a part's box; what lies outside the scan is transparent."""
    height, width = part.mask.shape
    mask = cv2.erode(part.mask, np.ones((3, 3), dtype=np.uint8))
    if not mask.any():
        mask = part.mask
    rgba = np.zeros((height, width, 4), dtype=np.uint8)
    top, left = max(0, part.top), max(0, part.left)
    seen = rgb[top : part.top + height, left : part.left + width]
    rows = slice(top - part.top, top - part.top + len(seen))
    cols = slice(left - part.left, left - part.left + seen.shape[1])
    rgba[rows, cols, :3] = seen
    rgba[rows, cols, 3] = 255
    rgba[..., 3] = np.where(rgba[..., 3] > 0, cv2.GaussianBlur(mask * np.uint8(255), (3, 3), 0), 0)
    return premultiply(rgba)


def _turned(pixels: Pixels, skew: float) -> Pixels:
    """Turned back by the skew, resampled once; premultiplied colours may be interpolated."""
    height, width = pixels.shape[:2]
    side = int(np.ceil(np.hypot(height, width))) + 2
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), -skew, 1.0)
    matrix[:, 2] += ((side - width) / 2, (side - height) / 2)
    turned = cv2.warpAffine(pixels, matrix, (side, side), flags=cv2.INTER_CUBIC)
    turned[..., :3] = np.minimum(turned[..., :3], turned[..., 3:])  # cubic overshoot
    return np.asarray(turned, dtype=np.uint8)


def _in_containers(cut: list[Pixels]) -> tuple[tuple[Pixels, ...], int]:
    """All fragments in squares of one size, centred; (pixels, side)."""
    boxes = []
    for pixels in cut:
        inside = pixels[..., 3] >= 128
        rows, cols = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
        y, x = np.nonzero(inside)
        ends = (int(rows[0]), int(rows[-1]) + 1, int(cols[0]), int(cols[-1]) + 1)
        middle = ((ends[0] + ends[1]) / 2 + y.mean() + 0.5) / 2, ((ends[2] + ends[3]) / 2 + x.mean() + 0.5) / 2
        boxes.append((ends, middle))
    reach = max(max(m[0] - t, b - m[0], m[1] - left, r - m[1]) for (t, b, left, r), m in boxes)
    side = 2 * int(np.ceil(reach) + 2)
    out = []
    for pixels, (_, (row, col)) in zip(cut, boxes, strict=True):
        square = np.zeros((side, side, 4), dtype=np.uint8)
        top, left = round(side / 2 - row), round(side / 2 - col)
        height, width = pixels.shape[:2]
        first_row, first_col = max(0, -top), max(0, -left)
        last_row, last_col = min(height, side - top), min(width, side - left)
        square[top + first_row : top + last_row, left + first_col : left + last_col] = pixels[
            first_row:last_row, first_col:last_col
        ]
        out.append(square)
    return tuple(out), side
