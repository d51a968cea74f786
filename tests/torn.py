"""A picture in pieces at any angle, cut here and now with cv2, independent of the generator.

Pixels belong to the nearest site after a wavy displacement, at four times the resolution, so that neighbours' alphas
sum to 1. Every piece is turned back by its own angle about its own centre, premultiplied, and cropped to what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles
from jigsync.values.layout import FREE
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth

FINE = 4


@dataclass(frozen=True, eq=False)
class Torn:
    """The pieces, where they belong, and the whole. Shapes: picture (H, W, 3); labels (H, W), each pixel's owner."""

    puzzle: Puzzle
    truth: Truth
    picture: NDArray[np.uint8]
    labels: NDArray[np.int64]


def torn(picture: NDArray[np.uint8], pieces: int, seed: int = 0) -> Torn:
    """Ids are not consecutive and angles are multiples of nothing; owner k is the k-th fragment of the truth."""
    rng = np.random.default_rng(seed)
    height, width = picture.shape[:2]
    sites = _sites(rng, pieces, height, width)
    rows, cols = (np.indices((FINE * height, FINE * width)) + 0.5) / FINE
    size = math.sqrt(height * width / pieces)
    wave = 0.1 * size * np.stack([np.sin(rows / size * 7 + 1), np.sin(cols / size * 6 + 2)])
    away = [(cols + wave[0] - x) ** 2 + (rows + wave[1] - y) ** 2 for x, y in sites]
    owner = np.argmin(away, axis=0)
    shares = np.stack([_shrunk(owner == k) for k in range(pieces)])
    names = [f"t{11 * k % 97}" for k in range(1, pieces + 1)]
    placement, pixels = {}, []
    for k, name in enumerate(names):
        alpha = np.rint(255 * shares[k])
        whole = np.concatenate([np.rint(picture * (alpha / 255)[..., None]), alpha[..., None]], axis=-1)
        stored, pose = _turned_back(whole.astype(np.uint8), float(rng.uniform(-math.pi, math.pi)))
        pixels.append(stored)
        placement[name] = Placed(pose)
    order = rng.permutation(pieces)
    ids = tuple(names[k] for k in order)
    puzzle = Puzzle(Fragments(ids, tuple(pixels[k] for k in order)), name="torn")
    return Torn(puzzle, Truth(FREE, placement), picture, shares.argmax(axis=0))


def _sites(rng: np.random.Generator, pieces: int, height: int, width: int) -> NDArray[np.float64]:
    """Far from each other: of 30 candidates the farthest. Shapes: -> (pieces, 2) as (x, y)."""
    sites = [rng.uniform((0, 0), (width, height))]
    while len(sites) < pieces:
        more = rng.uniform((0, 0), (width, height), (30, 2))
        near = np.min([np.hypot(*(more - site).T) for site in sites], axis=0)
        sites.append(more[int(np.argmax(near))])
    return np.array(sites)


def _shrunk(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    rows, cols = mask.shape
    return np.asarray(mask.reshape(rows // FINE, FINE, cols // FINE, FINE).mean(axis=(1, 3)))


def _turned_back(whole: NDArray[np.uint8], angle: float) -> tuple[NDArray[np.uint8], Pose]:
    """A piece in the whole picture's frame -> as it is handed over, turned by -angle, and its true pose."""
    used = np.argwhere(whole[..., 3] > 0)
    middle = (used.min(axis=0) + used.max(axis=0) + 1)[::-1] / 2
    side = int(np.hypot(*np.ptp(used, axis=0))) + 8
    back = angles.matrix(-angle)
    shift = side / 2 - 0.5 + back @ (0.5 - middle)
    kernel = cv2.INTER_CUBIC
    stored = cv2.warpAffine(whole, np.column_stack([back, shift]), (side, side), flags=kernel)
    stored[..., :3] = np.minimum(stored[..., :3], stored[..., 3:])
    rows, cols = (np.flatnonzero((stored[..., 3] > 0).any(axis=axis)) for axis in (1, 0))
    box = stored[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    # The centre of the cropped picture is this far from the point that lies at `middle`.
    moved = np.array([cols[0] + cols[-1] + 1 - side, rows[0] + rows[-1] + 1 - side]) / 2
    x, y = middle + angles.act(angle, moved)
    return np.ascontiguousarray(box), Pose(angle, (float(x), float(y)))
