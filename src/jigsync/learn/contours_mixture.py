"""Puzzles that the contour network learns from: torn, cut and worn in every way, drawn from a mixture of kinds.

The k-th puzzle is a pure function of (pictures, mixture, seed, k), so that training can be resumed at any puzzle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import Style, TearOptions
from jigsync.learn.mixture import Pictures, draw_picture, draw_window
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

Range = tuple[float, float]


class Kind(Protocol):
    """A kind of puzzle, and its share of the mixture, relative."""

    @property
    def weight(self) -> float: ...

    def draw(self, rgb: NDArray[np.uint8], rng: np.random.Generator) -> tuple[Puzzle, Truth]:
        """A puzzle of this kind, of a window of a picture."""
        ...


@dataclass(frozen=True)
class Torn:
    """A picture without a grid: ranges that its damage is drawn from, uniformly.

    Attributes:
        weight: its share of the mixture, relative.
        style: how it parts.
        erosion: share of the size taken off every edge.
        rim: width of white rims, as a share of the size.
        photo: eps_photo.
        pieces: fewest and most.
        size: smallest and largest, px.
    """

    weight: float
    style: Style = "tear"
    erosion: Range = (0.0, 0.0)
    rim: Range = (0.0, 0.0)
    photo: Range = (0.0, 0.0)
    pieces: tuple[int, int] = (6, 20)
    size: tuple[int, int] = (64, 128)

    def draw(self, rgb: NDArray[np.uint8], rng: np.random.Generator) -> tuple[Puzzle, Truth]:
        """A puzzle of this kind, of a window of a picture."""
        size = int(rng.integers(self.size[0], self.size[1] + 1))
        pieces = int(rng.integers(self.pieces[0], self.pieces[1] + 1))
        erosion, rim, photo = (float(rng.uniform(*range_)) for range_ in (self.erosion, self.rim, self.photo))
        aspect = float(np.exp(rng.uniform(-0.4, 0.4)))
        if self.style == "knobs":  # pieces lie in rows and columns
            rows, cols = (int(k) for k in rng.integers(2, 6, 2))
            pieces, aspect = rows * cols, cols / rows
        window = draw_part(rgb, aspect, rng)
        options = TearOptions(pieces, size, self.style, erosion, rim * size, photo, presentation=draw_presentation(rng))
        return tear_picture(window, options, int(rng.integers(2**62)))


@dataclass(frozen=True)
class Swept:
    """A Met-Sweep puzzle: ranges that its damage is drawn from, uniformly.

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
    cells: tuple[int, int] = (56, 112)

    def draw(self, rgb: NDArray[np.uint8], rng: np.random.Generator) -> tuple[Puzzle, Truth]:
        """A puzzle of this kind, of a window of a picture."""
        cell = int(rng.integers(self.cells[0], self.cells[1] + 1))
        grid = Grid(*(int(rng.integers(self.rows[0], self.rows[1] + 1)) for _ in range(2)))
        damage = Damage(*(float(rng.uniform(*range_)) for range_ in (self.shape, self.erosion, self.photo)))
        window = draw_part(rgb, grid.cols / grid.rows, rng)
        options = CutOptions(grid, cell, damage, presentation=draw_presentation(rng))
        return cut_picture(window, options, int(rng.integers(2**62)), redraw=False)


MIXTURE: Final[Mapping[str, Kind]] = {
    "torn": Torn(0.06, photo=(0.0, 0.08)),
    "many": Torn(0.08, pieces=(24, 40), erosion=(0.0, 0.03), size=(48, 80)),
    "worn": Torn(0.12, erosion=(0.005, 0.03), photo=(0.0, 0.1)),
    "rubbed": Torn(0.14, erosion=(0.03, 0.07), photo=(0.0, 0.15)),
    "rimmed": Torn(0.06, erosion=(0.0, 0.01), rim=(0.01, 0.06), photo=(0.0, 0.1)),
    "cuts": Torn(0.08, "cuts", erosion=(0.0, 0.03), photo=(0.0, 0.08)),
    "knobs": Torn(0.08, "knobs", erosion=(0.0, 0.02), photo=(0.0, 0.1)),
    "light": Swept(0.06, (4, 20), (0, 0.08), (0, 0.1)),
    "heavy": Swept(0.12, (8, 32), (0.04, 0.14), (0.05, 0.2)),
    "severe": Swept(0.06, (16, 32), (0.12, 0.22), (0.05, 0.22)),
    "squares": Swept(0.06, (0, 0), (0, 0), (0, 0.05)),
    "eroded": Swept(0.08, (0, 0), (0.03, 0.22), (0.0, 0.15)),
}

ANY: Final = 0.6
"""Share of the puzzles at any angle; the others are cropped, at quarter turns."""
SMALLEST_WINDOW: Final = 0.5
"""Least share of a picture's shorter side that a puzzle shows."""


def draw_presentation(rng: np.random.Generator) -> Literal["cropped", "any"]:
    """How a puzzle is handed over: never in a frame."""
    return "any" if rng.random() < ANY else "cropped"


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
