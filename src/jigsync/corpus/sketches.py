"""Pictures of kinds that nothing was trained on, drawn by code: maps, printed text and cartoons."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values.errors import OptionError

Rgb = NDArray[np.uint8]
KINDS: Final = ("map", "text", "cartoon")
LETTERS: Final = "etaoinshrdlucmfwypvbgk"
INK: Final = (30, 30, 40)


def sketch(kind: str, seed: int, size: int = 640) -> Rgb:
    """A picture of a kind. Shapes: -> (size, size, 3) uint8."""
    rng = np.random.default_rng([seed, size])
    if kind == "map":
        return _map(rng, size)
    if kind == "text":
        return _text(rng, size)
    if kind == "cartoon":
        return _cartoon(rng, size)
    raise OptionError(f"There is no sketch '{kind}'; the kinds are {', '.join(KINDS)}.")


def _map(rng: np.random.Generator, size: int) -> Rgb:
    """Tinted heights with contour lines, roads, and places with names."""
    small = rng.normal(size=(12, 12)).astype(np.float32)
    height = cv2.resize(small, (size, size), interpolation=cv2.INTER_CUBIC)
    height = (height - height.min()) / np.ptp(height)
    tints = np.array([(150, 190, 225), (200, 222, 180), (230, 226, 170), (214, 190, 140), (196, 160, 130)], np.float64)
    at = np.clip(height, 0, 1) * (len(tints) - 1)
    low = np.minimum(at.astype(int), len(tints) - 2)
    picture: Rgb = (tints[low] * (1 - (at - low))[..., None] + tints[low + 1] * (at - low)[..., None]).astype(np.uint8)
    level = np.floor(height * 14)
    line = (
        np.abs(np.diff(level, axis=0, prepend=level[:1])) + np.abs(np.diff(level, axis=1, prepend=level[:, :1]))
    ) > 0
    picture[line] = (140, 110, 80)
    for _ in range(9):
        walk = np.cumsum(np.concatenate([rng.uniform(0, size, (1, 2)), rng.normal(0, 45, (14, 2))]), axis=0)
        cv2.polylines(picture, [walk.astype(np.int32)], False, (190, 60, 50), 2, cv2.LINE_AA)
    for _ in range(24):
        x, y = rng.integers(20, size - 60, 2).tolist()
        cv2.circle(picture, (x, y), 3, INK, -1, cv2.LINE_AA)
        cv2.putText(picture, _word(rng).title(), (x + 6, y + 4), cv2.FONT_HERSHEY_PLAIN, 1.0, INK, 1, cv2.LINE_AA)
    return picture


def _text(rng: np.random.Generator, size: int) -> Rgb:
    """A page in lines of made-up words, some of them headings."""
    picture = np.full((size, size, 3), (244, 240, 228), np.uint8)
    y = 30
    while y < size - 6:
        heading = rng.random() < 0.12
        scale, thick = (1.0, 2) if heading else (0.5, 1)
        x = 14
        while x < size - 60:
            word = _word(rng)
            cv2.putText(picture, word, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, INK, thick, cv2.LINE_AA)
            x += cv2.getTextSize(word, cv2.FONT_HERSHEY_SIMPLEX, scale, thick)[0][0] + (16 if heading else 9)
            if heading and rng.random() < 0.3:
                break
        y += 40 if heading else 20
    return picture


def _cartoon(rng: np.random.Generator, size: int) -> Rgb:
    """Flat shapes with dark outlines, the later ones in front."""
    picture = np.full((size, size, 3), rng.integers(150, 255, 3).tolist(), np.uint8)
    for _ in range(60):
        colour = rng.integers(40, 255, 3).tolist()
        centre = rng.uniform(0, size, 2)
        angle = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(5, 12))))
        reach = rng.uniform(25, 110) * rng.uniform(0.5, 1, len(angle))
        shape = (centre + np.stack([np.cos(angle), np.sin(angle)], axis=1) * reach[:, None]).astype(np.int32)
        cv2.fillPoly(picture, [shape], colour, cv2.LINE_AA)
        cv2.polylines(picture, [shape], True, INK, 3, cv2.LINE_AA)
    return picture


def _word(rng: np.random.Generator) -> str:
    return "".join(rng.choice(list(LETTERS), int(rng.integers(2, 9))))
