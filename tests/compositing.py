"""Puts stored fragments at their true poses, independently of the renderer, and compares with the picture."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.placement import Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle


def composite(puzzle: Puzzle, placement: Placement, shape: tuple[int, int], margin: int = 0) -> NDArray[np.float64]:
    """The sum of all fragments: exact where a pose is a quarter turn, one resampling elsewhere.

    Shapes: -> (H + 2 margin, W + 2 margin, 4).
    """
    total = np.zeros((shape[0] + 2 * margin, shape[1] + 2 * margin, 4))
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        placed = placement[name].moved(Pose.of_turns(0, (margin, margin)))
        pose = placed.pose
        assert pose is not None
        if pose.turns is not None:
            _put(total, z4.turn_pixels(pixels, pose.turns), pose.xy)
            continue
        height, width = pixels.shape[:2]
        # x_canvas = R (x - c) + xy, written out for pixel indices, whose centres lie half a pixel on.
        turn, there = pose.matrix[:, :2], pose.matrix[:, 2]
        shift = there - turn @ np.array([width / 2, height / 2]) + turn @ np.array([0.5, 0.5]) - 0.5
        matrix = np.concatenate([turn, shift[:, None]], axis=1)
        total += cv2.warpAffine(pixels.astype(np.float32), matrix, total.shape[1::-1], flags=cv2.INTER_CUBIC)
    return total


def _put(total: NDArray[np.float64], upright: NDArray[np.uint8], xy: tuple[float, float]) -> None:
    height, width = upright.shape[:2]
    left, top = xy[0] - width / 2, xy[1] - height / 2
    assert left == int(left), "a quarter turn falls on whole pixels"
    assert top == int(top), "a quarter turn falls on whole pixels"
    total[int(top) : int(top) + height, int(left) : int(left) + width] += upright


def psnr(found: NDArray[np.float64], wanted: NDArray[np.uint8]) -> float:
    """dB against 255."""
    return float(10 * np.log10(255**2 / np.mean(np.square(found - wanted))))
