"""The same puzzle in other frames: what a measurer that reads no frame must give the same answer for."""

from __future__ import annotations

import numpy as np

from jigsync.cutting.turned import trimmed, turn_fragment
from jigsync.values.angles import FULL
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Pixels, Puzzle

WIDEST = 17
"""Pixels of empty margin, at most."""


def reframed(puzzle: Puzzle, seed: int, angles: bool = False) -> tuple[Puzzle, dict[str, Pose]]:
    """Crops every fragment anew, turns it, and pads its four sides by different widths.

    Turns are by quarters and exact; with `angles` by any angle, resampled once. The hints of the puzzle are dropped.

    Returns:
        The new puzzle and new_from_old of every fragment: x_new = R x_old + t from centre to centre.
    """
    rng = np.random.default_rng(seed)
    pixels, poses = [], {}
    for name, old in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        cropped, offset = trimmed(old)
        turned, pose = _turned(cropped, rng, angles)
        new_from_cropped, padded = _padded(turned, rng)
        pixels.append(padded)
        poses[name] = new_from_cropped.compose(pose).compose(Pose.of_turns(0, offset).inverse())
    return Puzzle(Fragments(puzzle.ids, tuple(pixels)), name=puzzle.name), poses


def _turned(pixels: Pixels, rng: np.random.Generator, angles: bool) -> tuple[Pixels, Pose]:
    if not angles:
        turns = int(rng.integers(4))
        return np.rot90(pixels, turns), Pose.of_turns(turns, (0.0, 0.0))
    angle = float(rng.uniform(0.0, FULL))
    turned, offset = turn_fragment(pixels.astype(np.float32) / 255, angle)
    stored = np.rint(turned * 255).astype(np.uint8)
    return stored, Pose(angle, (0.0, 0.0)).compose(Pose.of_turns(0, offset).inverse())


def _padded(pixels: Pixels, rng: np.random.Generator) -> tuple[Pose, Pixels]:
    top, bottom, left, right = (int(k) for k in rng.integers(0, WIDEST + 1, 4))
    padded = np.pad(pixels, ((top, bottom), (left, right), (0, 0)))
    return Pose.of_turns(0, ((left - right) / 2, (top - bottom) / 2)), np.ascontiguousarray(padded)
