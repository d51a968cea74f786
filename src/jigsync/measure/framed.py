"""Fragments of rows and columns without a frame, put back into one: what reads cells can read them then.

A network tells from each outline where the fragment's cell is (`measure.frames`). Fragments are turned upright in
their cells, up to quarter turns, and centred in containers, as in presentation `cell`. Fragments that lie at quarter
turns already are only shifted, by whole pixels: nothing is resampled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure.frames import Frames, load_frames
from jigsync.measure.learned import Learned
from jigsync.measure.seen import Seen
from jigsync.values import angles
from jigsync.values.cell_frames import CellFrames
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Fragments, Pixels, Puzzle

SKEW: Final = np.radians(2.5)
"""Median angle off a quarter turn below which all fragments are taken to lie at quarter turns."""
MOST_SKEW: Final = 0.8
"""The median is asked of this share of the fragments, those that know their angle best."""
LARGEST: Final = 3.0
"""Side of a container, in pitches, at most."""


@dataclass(frozen=True)
class Framed:
    """The measurer: `learned`, of fragments put back into frames.

    Attributes:
        name: "framed".
        weights: another file of the frame network than the shipped one.
    """

    name: str = "framed"
    weights: Path | None = None
    frame_free: ClassVar[bool] = True

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs of sides, and says where each fragment's cell is."""
        seen = Seen.of(puzzle)
        return self.of(seen, load_frames(self.weights).frames(seen))

    def of(self, seen: Seen, found: Frames) -> Measurements:
        """The same, of outlines that were read already, and cells that were told from them."""
        frames = settled(seen, found)
        return replace(Learned().measure(reframed(seen.puzzle, frames)), frames=frames)


def settled(seen: Seen, found: Frames) -> CellFrames:
    """Frames that are used: those of fragments at quarter turns are shifts by whole pixels."""
    known = np.argsort(found.off[:, 1], kind="stable")[: max(1, round(MOST_SKEW * seen.outlines.n))]
    quarter = float(np.median(np.abs(found.angle[known]))) < SKEW
    angle = np.zeros_like(found.angle) if quarter else found.angle
    centre = found.centre
    if quarter:
        # Between pixels where the picture's own centre is: sides of even length have theirs between two.
        sides = np.array([pixels.shape[1::-1] for pixels in seen.puzzle.fragments.pixels])
        centre = np.round(centre - sides % 2 / 2) + sides % 2 / 2
    return CellFrames(centre, angle, found.pitch, found.off, found.pitch_off, seen.outlines)


def reframed(puzzle: Puzzle, frames: CellFrames) -> Puzzle:
    """The puzzle in presentation `cell`."""
    side = _side(puzzle, frames)
    pixels = tuple(
        _shifted(fragment, centre, side) if frames.quarter else _turned(fragment, centre, float(angle), side)
        for fragment, centre, angle in zip(puzzle.fragments.pixels, frames.centre, frames.angle, strict=True)
    )
    return Puzzle(Fragments(puzzle.ids, pixels), max(2, round(frames.pitch)), side, puzzle.name)


def _side(puzzle: Puzzle, frames: CellFrames) -> int:
    """Of a square container that holds every fragment, as far as LARGEST allows; even."""
    half = max(
        np.hypot(*(np.array(pixels.shape[1::-1]) / 2 + np.abs(centre)))
        if not frames.quarter
        else float((np.array(pixels.shape[1::-1]) / 2 + np.abs(centre)).max())
        for pixels, centre in zip(puzzle.fragments.pixels, frames.centre, strict=True)
    )
    return 2 * int(np.ceil(max(frames.pitch / 2, min(half, LARGEST * frames.pitch / 2))))


def _shifted(pixels: Pixels, centre: NDArray[np.float64], side: int) -> Pixels:
    """The fragment with this place in the middle of a container; what does not fit is cut off."""
    out = np.zeros((side, side, 4), dtype=np.uint8)
    height, width = pixels.shape[:2]
    left, top = (
        round(side / 2 - middle - float(at)) for middle, at in zip((width / 2, height / 2), centre, strict=True)
    )
    rows, cols = slice(max(top, 0), min(top + height, side)), slice(max(left, 0), min(left + width, side))
    out[rows, cols] = pixels[rows.start - top : rows.stop - top, cols.start - left : cols.stop - left]
    return out


def _turned(pixels: Pixels, centre: NDArray[np.float64], angle: float, side: int) -> Pixels:
    """The fragment turned by -angle about this place, which comes to the middle of a container; one resampling."""
    height, width = pixels.shape[:2]
    turn = angles.matrix(-angle)
    middle = np.array([width / 2, height / 2]) + centre
    shift = side / 2 - turn @ middle
    # Pixel k covers [k, k + 1]: indices are half a pixel less than places.
    shift += turn @ np.full(2, 0.5) - 0.5
    matrix = np.concatenate([turn, shift[:, None]], axis=1)
    out = cv2.warpAffine(
        pixels, matrix, (side, side), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_CONSTANT, borderValue=(0, 0, 0, 0)
    )
    out[..., :3] = np.minimum(out[..., :3], out[..., 3:])  # cubics overshoot
    return np.asarray(out, dtype=np.uint8)
