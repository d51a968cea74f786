"""Puzzles that the contour network learns from: torn, cut and worn in every way, drawn from a mixture of kinds.

The k-th puzzle is a pure function of (pictures, mixture, seed, k), so that training can be resumed at any puzzle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.cutting.seeds import derive_seed
from jigsync.learn.mixture import Pictures, draw_picture, draw_window
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

Range = tuple[float, float]


@dataclass(frozen=True)
class Kind:
    """A kind of Met-Sweep puzzle: ranges that its damage is drawn from, uniformly.

    Attributes:
        weight: its share of the mixture, relative.
        shape, erosion, photo: the axes of `Damage`.
        rows: fewest and most rows and columns.
        cells: smallest and largest cell, px.
    """

    weight: float
    shape: Range = (0.0, 0.0)
    erosion: Range = (0.0, 0.0)
    photo: Range = (0.0, 0.0)
    rows: tuple[int, int] = (2, 5)
    cells: tuple[int, int] = (56, 128)

    def draw(self, rgb: NDArray[np.uint8], rng: np.random.Generator) -> tuple[Puzzle, Truth]:
        """A puzzle of this kind, of a window of a picture."""
        cell = int(rng.integers(self.cells[0], self.cells[1] + 1))
        grid = Grid(*(int(rng.integers(self.rows[0], self.rows[1] + 1)) for _ in range(2)))
        damage = Damage(*(float(rng.uniform(*range_)) for range_ in (self.shape, self.erosion, self.photo)))
        window = draw_part(rgb, grid.cols / grid.rows, rng)
        return cut_picture(window, CutOptions(grid, cell, damage), int(rng.integers(2**62)), redraw=False)


MIXTURE: Final[Mapping[str, Kind]] = {
    "fractured": Kind(0.2, (4, 32), (0, 0), (0, 0.1)),
    "light": Kind(0.2, (4, 24), (0, 0.08), (0, 0.1)),
    "medium": Kind(0.2, (8, 32), (0.04, 0.12), (0.05, 0.2)),
    "severe": Kind(0.1, (16, 32), (0.1, 0.22), (0.05, 0.22)),
    "squares": Kind(0.08, (0, 0), (0, 0), (0, 0.05)),
    "eroded": Kind(0.12, (0, 0), (0.03, 0.22), (0.0, 0.15)),
}

SMALLEST_WINDOW: Final = 0.5
"""Least share of a picture's shorter side that a puzzle shows."""


def draw_part(rgb: NDArray[np.uint8], aspect: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A random part of a picture with about this width over height. Shapes: (H, W, 3) -> (h, w, 3)."""
    height, width = rgb.shape[:2]
    largest = min(height, width / aspect)
    tall = largest * rng.uniform(SMALLEST_WINDOW, 1.0)
    return draw_window(rgb, [max(2, int(tall)), max(2, min(width, int(tall * aspect)))], rng)


def draw_puzzle(pictures: Pictures, mixture: Mapping[str, Kind], seed: int, k: int) -> tuple[Puzzle, Truth, str]:
    """The k-th puzzle of a seed, its truth and its kind."""
    rng = np.random.default_rng(derive_seed("contours", seed, k))
    weights = np.array([kind.weight for kind in mixture.values()])
    name = list(mixture)[int(rng.choice(len(weights), p=weights / weights.sum()))]
    return *mixture[name].draw(draw_picture(pictures, rng), rng), name
