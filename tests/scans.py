"""Scans for tests: fragments laid on a plain background, each at a known place and skew."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

import jigsync
from jigsync import data
from jigsync.values.puzzle import Puzzle

GREEN = (62, 128, 84)


@dataclass(frozen=True)
class Laid:
    """A fragment on the scan: its centre in cells, and its skew in degrees, counter-clockwise."""

    row: float
    col: float
    skew: float = 0.0


def cut(grid: str = "2x3", severity: str = "clean", cell: int = 64, seed: int = 5) -> Puzzle:
    """A small puzzle of a picture without symmetry."""
    return jigsync.cut(data.picture("astronaut"), grid, severity, cell=cell, seed=seed)


def lay(
    puzzle: Puzzle,
    places: list[Laid],
    *,
    background: tuple[int, int, int] = GREEN,
    drift: float = 0.0,
    noise: float = 0.0,
    specks: int = 0,
) -> NDArray[np.uint8]:
    """(H, W, 3): the fragments over the background, which may get darker to the lower right and be noisy."""
    assert puzzle.cell is not None
    rng = np.random.default_rng(11)
    cell = puzzle.cell
    height = round((max(place.row for place in places) + 1) * cell)
    width = round((max(place.col for place in places) + 1) * cell)
    v, u = np.mgrid[0:height, 0:width]
    page = np.array(background, dtype=np.float64) * (1 - drift * (u / width + v / height))[..., None]
    for place, pixels in zip(places, puzzle.fragments.pixels, strict=True):
        size = pixels.shape[0]
        centre = np.array([place.col * cell, place.row * cell])
        matrix = cv2.getRotationMatrix2D(((size - 1) / 2, (size - 1) / 2), place.skew, 1.0)
        matrix[:, 2] += np.round(centre - size / 2)
        laid = cv2.warpAffine(pixels, matrix, (width, height), flags=cv2.INTER_LINEAR).astype(np.float64)
        page = page * (1 - laid[..., 3:] / 255) + laid[..., :3]
    for _ in range(specks):
        # Dust falls on the margin, where it cannot be taken for a part of a fragment.
        at = (int(rng.integers(4, width - 4)), int(rng.integers(3, 7)))
        cv2.circle(page, at, 1, (20.0, 20.0, 20.0), cv2.FILLED)
    page += rng.normal(0, noise, page.shape)
    return np.clip(np.rint(page), 0, 255).astype(np.uint8)


def apart(skews: list[float], cols: int = 3, pitch: float = 1.6) -> list[Laid]:
    """Places in rows, well apart."""
    return [Laid(1 + pitch * (k // cols), 1 + pitch * (k % cols), skew) for k, skew in enumerate(skews)]
