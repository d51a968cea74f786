"""Samples of the unary head: a picture's large part, put together, and some small ones worn like fragments.

Leak control (SPEC 5): a part is turned at random before it is digitised, that is scaled, noised and compressed by JPEG,
so that nothing but content tells the turn. The first of four views is upright and the true turns are 0: shuffling the
four would change nothing, for the head is equivariant. Pictures that are stored upright are shown SHRINK times smaller
than they are stored, as their own JPEG blocks lie upright too; those that are stored turned are shown as they are, but
at other angles than quarter turns no picture is, for which its blocks would tell that it does not lie straight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.photometry import jpeg_round_trip
from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import read_rgb
from jigsync.learn.chunks import Sample
from jigsync.learn.mixture import Pictures
from jigsync.learn.turned import Turned
from jigsync.learn.wholes import OBLIQUE, draw_whole, shown
from jigsync.measure.views import FRAGMENT, filled, four_turns
from jigsync.values import z4

WHOLE: Final = 160
"""Side of the large part's view. Solving shows pictures a little larger (`measure/views.py`)."""
LARGE: Final = (0.7, 1.0)
"""Side of the large part, in shorter sides of the picture."""
LONG: Final = 0.2
"""How many large parts are longer than wide or wider than long, by up to ASPECT: shown with grey beside them. Drawn
without regard to the picture's own shape, so that a part's shape does not tell the turn."""
ASPECT: Final = 2.0
SMALL: Final = (0.16, 0.45)
SMALLS: Final = 1
"""Small parts a sample."""
SHRINK: Final = 2
"""How much smaller than they are stored pictures are shown that are stored upright."""
TURNED: Final = 0.7
"""Share of the samples that show pictures stored turned, where there are any."""
LEAST: Final = 80
"""Least side of the large part's scan, in pixels: of a small picture nearly all is shown."""
STRETCH: Final = 0.12
"""Nearly square parts are made square: their sides are longer or shorter by up to exp(STRETCH)."""
NEARLY_SQUARE: Final = 1.29
"""Parts whose longer side is more than so many shorter ones are padded instead."""
SKEW: Final = 4.0
"""Largest skew of a view, in degrees."""
INSETS: Final = (-0.06, 0.16)
"""How far a fragment's sides are worn away, on average, in parts of it; negative: it leans over its cell."""
ROUGH: Final = (0.0, 0.07)
QUALITY: Final = (45, 96)

Rgb = NDArray[np.uint8]


@dataclass(frozen=True)
class UnaryData:
    """The stream of samples of a seed."""

    pictures: Pictures
    seed: int
    turned: Sequence[Turned] = ()

    def sample(self, k: int) -> Sample:
        """The k-th sample: large (4, WHOLE, WHOLE, 3), small (SMALLS, 4, FRAGMENT, FRAGMENT, 3) and cells (SMALLS, 2).

        `picture` is the number of the picture among all. A folder is drawn first, then a picture of it.
        """
        rng = np.random.default_rng(derive_seed("unary", self.seed, k))
        rgb, number, shrink = self._draw(rng)
        oblique = rng.random() < OBLIQUE
        far = max(shrink, SHRINK) if oblique else shrink
        views = shown(draw_whole(large_part(rgb, far, rng), far, rng), WHOLE, oblique, rng)
        small, cells = [], []
        for _ in range(SMALLS):
            part, centre = _part(rgb, _share(rgb, SMALL, shrink * FRAGMENT, rng), rng)
            small.append(digitised(worn(part, rng), FRAGMENT, shrink, rng))
            cells.append(centre)
        return {
            "large": views,
            "small": np.stack(small),
            "cells": np.array(cells, dtype=np.float32),
            "picture": np.array(number),
        }

    def _draw(self, rng: np.random.Generator) -> tuple[Rgb, int, int]:
        """A picture, its number among all, and how much smaller it is to be shown."""
        stored: Sequence[Sequence[Path] | Turned] = self.pictures
        if self.turned and rng.random() < TURNED:
            stored = self.turned
        drawn = int(rng.integers(len(stored)))
        folder = stored[drawn]
        at = int(rng.integers(len(folder)))
        before = 0 if stored is self.pictures else sum(len(one) for one in self.pictures)
        number = before + sum(len(one) for one in stored[:drawn]) + at
        if isinstance(folder, Turned):
            return folder.read(at), number, 1
        return read_rgb(folder[at]), number, SHRINK


def _share(rgb: Rgb, shares: tuple[float, float], least: int, rng: np.random.Generator) -> float:
    """Side of a part of so many pixels at least, in shorter sides of the picture."""
    return float(max(rng.uniform(*shares), min(1.0, least / min(rgb.shape[:2]))))


def _part(rgb: Rgb, share: float, rng: np.random.Generator) -> tuple[Rgb, tuple[float, float]]:
    """A random part, nearly square, and its centre (x, y) in the picture, in [0, 1]."""
    stretch = np.exp(rng.uniform(-STRETCH, STRETCH))
    shorter = share * min(rgb.shape[:2])
    height, width = (
        int(np.clip(shorter * factor, 8, side))
        for factor, side in zip((stretch, 1 / stretch), rgb.shape[:2], strict=True)
    )
    top, left = (int(rng.integers(a - b + 1)) for a, b in zip(rgb.shape[:2], (height, width), strict=True))
    part = rgb[top : top + height, left : left + width]
    return part, ((left + width / 2) / rgb.shape[1], (top + height / 2) / rgb.shape[0])


def large_part(rgb: Rgb, shrink: int, rng: np.random.Generator) -> Rgb:
    """The large part of a picture, nearly square or, of LONG of them, not at all. Shapes: (H, W, 3) -> (h, w, 3)."""
    part, _ = _part(rgb, _share(rgb, LARGE, shrink * LEAST, rng), rng)
    if rng.random() >= LONG:
        return part
    kept = int(min(part.shape[:2]) / rng.uniform(NEARLY_SQUARE, ASPECT))
    axis = int(rng.integers(2))
    start = int(rng.integers(part.shape[axis] - kept + 1))
    rows, cols = (slice(start, start + kept) if axis == k else slice(None) for k in range(2))
    return part[rows, cols]


def _field(size: tuple[int, int], coarse: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Smooth noise of unit variance at `coarse` lattice points a side. Shapes: -> size."""
    lattice = rng.standard_normal((coarse, coarse), dtype=np.float32)
    return np.asarray(cv2.resize(lattice, size[::-1], interpolation=cv2.INTER_CUBIC))


def worn(part: Rgb, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A part with its sides worn away unevenly, colour times alpha. Shapes: (h, w, 3) -> (h, w, 4)."""
    height, width = part.shape[:2]
    y, x = (np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width
    insets = rng.uniform(*INSETS) + rng.normal(0, 0.02, 4)
    depth = np.minimum(
        np.minimum(y - insets[0], 1 - y - insets[1])[:, None], np.minimum(x - insets[2], 1 - x - insets[3])[None]
    ).astype(np.float32)
    depth -= np.float32(rng.uniform(*ROUGH)) * _field((height, width), int(rng.integers(4, 11)), rng)
    alpha = np.asarray(np.clip(0.5 + depth * min(height, width), 0, 1), dtype=np.float32)
    return _premultiplied(part, alpha)


def _premultiplied(part: Rgb, alpha: NDArray[np.float32]) -> NDArray[np.uint8]:
    colour = np.rint(part * alpha[..., None])
    return np.concatenate([colour, np.rint(255 * alpha)[..., None]], axis=2).astype(np.uint8)


def digitised(pixels: NDArray[np.uint8], size: int, shrink: int, rng: np.random.Generator) -> Rgb:
    """A part as a camera sees it that does not know which side is up, in its four turns.

    Light: gain and bias. Camera, in a frame turned at random: skewed a little and shifted by a pixel or two, scaled,
    noise, JPEG. The four views are exact turns of that one scan, as they are of a stored fragment; a small picture's is
    enlarged.

    Args:
        shrink: the scan is at least so many times smaller than the part.

    Shapes: (h, w, 4) -> (4, size, size, 3).
    """
    frame = int(rng.integers(z4.ORDER))
    between = max(8, min(int(size * rng.uniform(1.0, 1.5)), min(pixels.shape[:2]) // shrink))
    turned = cv2.resize(z4.turn_pixels(pixels, frame), (between, between), interpolation=cv2.INTER_AREA)
    light = filled(_skewed(np.asarray(turned), rng), (between, between), between).astype(np.float32)
    light = rng.normal(1, 0.12) * light + np.float32(rng.normal(0, 12))
    light += np.float32(rng.uniform(0, 6)) * rng.standard_normal(light.shape, dtype=np.float32)
    scan = jpeg_round_trip(np.clip(light, 0, 255).astype(np.uint8), int(rng.integers(*QUALITY)))
    mode = cv2.INTER_AREA if between >= size else cv2.INTER_LINEAR
    view = np.asarray(cv2.resize(scan, (size, size), interpolation=mode))
    return four_turns(z4.turn_pixels(view, z4.inverse(frame)))


def _skewed(scan: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A square, slightly turned, shifted and magnified. Shapes: (S, S, 4) -> the same."""
    side = len(scan)
    centre = side * rng.uniform(0.48, 0.52, 2)
    matrix = cv2.getRotationMatrix2D((centre[0], centre[1]), rng.uniform(-SKEW, SKEW), rng.uniform(1.0, 1.08))
    return np.asarray(cv2.warpAffine(scan, matrix, (side, side), flags=cv2.INTER_LINEAR), dtype=np.uint8)


def augmented(views: Rgb, mirrored: bool, rng: np.random.Generator) -> NDArray[np.float32]:
    """Views as the network takes them, in other colours, mirrored or not.

    A mirrored picture is upright still; its view_k is the mirrored view_-k. Shapes: (4, S, S, 3) -> (4, 3, S, S).
    """
    x = views.astype(np.float32)
    if mirrored:
        x = x[[z4.inverse(k) for k in range(z4.ORDER)], :, ::-1]
    mix = np.eye(3) + rng.normal(0, 0.06, (3, 3))
    if rng.random() < 0.15:
        mix = np.full((3, 3), 1 / 3)
    mix *= np.exp(rng.normal(0, 0.15))
    x = (x - 127) @ mix.T.astype(np.float32) + np.float32(rng.normal(0, 8))
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2) * np.float32(1 / 128))
