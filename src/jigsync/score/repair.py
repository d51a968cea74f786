"""What the evaluation scripts of the RePAIR data set compute, with all that is odd about them.

Source: github.com/RePAIRProject/2D-baselines, `2D_reconstruction_evaluation.py` and `2D_adjacency_based_evaluation.py`,
which go with Tsesmelis et al., NeurIPS 2024. Their numbers are called theirs; `docs/metrics.md` shows what to make of
them. Written anew from what these scripts do:

    Q_pos             = sum_i weight_i |result_i and truth_i| / |result_i|   over all fragments but the largest
    RMSE_rotation     = mean_i |(rot_i + turn) mod 360 - truth rot_i mod 360| / sqrt 2
    RMSE_translation  = mean_i |xy_i + shift - truth xy_i| / sqrt 2
    precision, recall = area-weighted shares of pairs that touch, in truth and in the answer

- The answer is moved so that the largest fragment, and no other, is right: `shift` in whole pixels, `turn` its angle.
  Q_pos turns the answer about the middle of that fragment's bounding box; RMSE_translation does not turn it at all.
- Places are cut off to whole pixels, and the true angles (not the answer's) to whole degrees.
- Neither RMSE is a root of a mean square, and angles are not wrapped: 359 degrees are 358 away from 1.
- weight_i is the fragment's share of all areas; a fragment that is not placed adds nothing to Q_pos, and is left out of
  both RMSE. Where the largest one is not placed the scripts fail, and the puzzle is left out of the mean: None here.
- Their precision divides by what is true and their recall by what was claimed.

Two things of the scripts are not kept: negative places are cut off at 0 there, so the answer is shifted until there are
none; and pictures lose their corners when they are turned, which theirs have margins for and ours get. Lengths are in
pixels; theirs are millimetres, 1 / 7.369 of a pixel of their photographs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.score.contacts import Contacts
from jigsync.values import angles
from jigsync.values.placement import Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

HALF: Final = 1 / math.sqrt(2)
Mask = NDArray[np.uint8]


@dataclass(frozen=True)
class RepairScores:
    """Of one puzzle; None where the scripts fail."""

    q_pos: float | None
    rmse_rotation: float | None
    rmse_translation: float | None


@dataclass(frozen=True)
class _Scripted:
    """A fragment as the scripts have it: a square picture, where its corner is, and how it is turned in degrees."""

    mask: Mask
    xy: NDArray[np.float64]
    degrees: float
    true_xy: NDArray[np.float64]
    true_degrees: float


def repair_scores(answer: Placement, truth: Placement, puzzle: Puzzle) -> RepairScores:
    """Q_pos and both RMSE of placements in pixels."""
    masks = {name: _squared(puzzle.fragments[name]) for name in puzzle.ids if name in truth}
    areas = {name: int(mask.sum()) for name, mask in masks.items()}
    largest = max(areas, key=lambda name: areas[name])
    scripted = {
        name: _scripted(mask, at, home)
        for name, mask in masks.items()
        if name in answer and (at := answer[name].pose) is not None and (home := truth[name].pose) is not None
    }
    if largest not in scripted:
        return RepairScores(None, None, None)
    scripted = _from_zero(scripted)
    anchor = scripted.pop(largest)
    if not scripted:
        return RepairScores(0.0 if len(masks) > 1 else None, None, None)
    shift = np.trunc(anchor.true_xy - anchor.xy)
    turn = (anchor.true_degrees - anchor.degrees + 360) % 360
    off = [abs((one.degrees + turn) % 360 - one.true_degrees % 360) for one in scripted.values()]
    away = [float(np.hypot(*(one.xy + shift - one.true_xy))) for one in scripted.values()]
    others = sum(area for name, area in areas.items() if name != largest)
    middle = _bounds_middle(anchor) + np.trunc(anchor.xy) + shift
    shares = {name: _shared(one, shift, turn, middle) for name, one in scripted.items()}
    return RepairScores(
        sum(areas[name] / others * share for name, share in shares.items()),
        HALF * float(np.mean(off)) % 360,
        HALF * float(np.mean(away)),
    )


def repair_pairs(claimed: Contacts, true: Contacts, areas: Mapping[str, float]) -> tuple[float, float]:
    """What the scripts call precision, and what they call recall; 0 where they divide by nothing."""

    def weight(pairs: Contacts) -> float:
        return sum(areas.get(one, 0.0) + areas.get(other, 0.0) for one, other in sorted(pairs))

    both = weight(claimed & true)
    return both / weight(true) if true else 0.0, both / weight(claimed) if claimed else 0.0


def _squared(pixels: NDArray[np.uint8]) -> Mask:
    """What is not wholly transparent, in the middle of a square that holds it at any angle."""
    height, width = pixels.shape[:2]
    side = math.ceil(math.hypot(height, width)) + 2
    # Both margins the same, so that the centre stays where it is.
    down, right = (side - height) // 2 + 1, (side - width) // 2 + 1
    return np.pad((pixels[..., 3] > 0).astype(np.uint8), ((down, down), (right, right)))


def _scripted(mask: Mask, at: Pose, home: Pose) -> _Scripted:
    half = np.array(mask.shape[::-1]) / 2
    return _Scripted(mask, np.array(at.xy) - half, at.degrees % 360, np.array(home.xy) - half, home.degrees % 360)


def _from_zero(scripted: Mapping[str, _Scripted]) -> dict[str, _Scripted]:
    """With the answer, and the truth, moved by whole pixels until no place is negative."""
    least = np.floor(np.min([one.xy for one in scripted.values()], axis=0))
    true_least = np.floor(np.min([one.true_xy for one in scripted.values()], axis=0))
    return {
        name: _Scripted(one.mask, one.xy - least, one.degrees, one.true_xy - true_least, one.true_degrees)
        for name, one in scripted.items()
    }


def _bounds_middle(one: _Scripted) -> NDArray[np.float64]:
    """(x, y) of the middle of the turned fragment's bounding box, in its picture."""
    turned = _warped(one.mask, _about(one.mask, one.degrees), one.mask.shape)
    rows, cols = np.flatnonzero(turned.any(axis=1)), np.flatnonzero(turned.any(axis=0))
    return np.array([float(cols[0] + cols[-1] + 1), float(rows[0] + rows[-1] + 1)]) / 2


def _shared(one: _Scripted, shift: NDArray[np.float64], turn: float, middle: NDArray[np.float64]) -> float:
    """Which share of a fragment, moved with the largest one, lies where it belongs."""
    placed = Pose(0.0, tuple(np.trunc(one.xy) + shift)).compose(_about(one.mask, one.degrees))
    whole = Pose.of_degrees(turn, (0.0, 0.0))
    whole = Pose(whole.angle, tuple(middle - whole.act(middle)))
    placed = whole.compose(placed)
    home = Pose(0.0, tuple(np.trunc(one.true_xy))).compose(_about(one.mask, math.trunc(one.true_degrees)))
    # A window of the canvas around the answer.
    centre = placed.act(np.array(one.mask.shape[::-1]) / 2)
    side = max(one.mask.shape) + 4
    to_window = Pose(0.0, tuple(-np.floor(centre - side / 2)))
    result = _warped(one.mask, to_window.compose(placed), (side, side))
    true = _warped(one.mask, to_window.compose(home), (side, side))
    return int(np.count_nonzero(result & true)) / max(1, int(np.count_nonzero(result)))


def _about(mask: Mask, degrees: float) -> Pose:
    """A turn about the middle of a picture, x and y from its corner."""
    half = np.array(mask.shape[::-1]) / 2
    turn = Pose.of_degrees(degrees, (0.0, 0.0))
    return Pose(turn.angle, tuple(half - turn.act(half)))


def _warped(mask: Mask, window_from_mask: Pose, shape: tuple[int, ...]) -> Mask:
    """The mask on another raster, nearest pixels."""
    matrix = window_from_mask.matrix
    # Pixel k covers [k, k + 1]: indices are half a pixel less than places.
    matrix[:, 2] += angles.matrix(window_from_mask.angle) @ np.full(2, 0.5) - 0.5
    return np.asarray(cv2.warpAffine(mask, matrix, shape[1::-1], flags=cv2.INTER_NEAREST), dtype=np.uint8)
