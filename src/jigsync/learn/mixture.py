"""Puzzles to learn from: a random window of a random picture, cut with damage drawn from a mixture of kinds.

The k-th puzzle is a pure function of (pictures, mixture, seed, k), so that training can be resumed at any puzzle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.handed import Presentation
from jigsync.cutting.options import CutOptions, Damage
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.io.images import list_images, read_rgb
from jigsync.values.errors import InputError, bad_value
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

Range = tuple[float, float]


@dataclass(frozen=True)
class Kind:
    """A kind of puzzle: ranges that its damage is drawn from, uniformly, and what is cut.

    Attributes:
        weight: its share of the mixture, relative.
        shape, erosion, photo: the axes of `Damage`.
        rim: for squares: what is cut from every side, in cells; None cuts along curves.
        cells: sizes of a cell, px.
        rows: rows and columns: more puzzles teach more than larger ones.
        across: cells across the whole picture, of which a puzzle is cut from a window: how much a fragment shows.
    """

    weight: float
    shape: Range = (0.0, 0.0)
    erosion: Range = (0.0, 0.0)
    photo: Range = (0.0, 0.0)
    rim: Range | None = None
    cells: tuple[int, ...] = (44, 48, 50, 56, 64, 64, 64, 64, 64, 80, 96, 128)
    rows: tuple[int, ...] = (3, 3, 4, 4, 5)
    across: Range = (3.0, 10.0)

    def damage(self, rng: np.random.Generator) -> Damage:
        """Damage of this kind."""
        return Damage(rng.uniform(*self.shape), rng.uniform(*self.erosion), rng.uniform(*self.photo))


MIXTURE: Final[Mapping[str, Kind]] = {
    "severe": Kind(0.24, (22, 32), (0.14, 0.22), (0.08, 0.25)),
    "eroded": Kind(0.25, (0, 0), (0.10, 0.22), (0.04, 0.20)),
    "gapped": Kind(0.22, rim=(0.02, 0.13)),
    "heavy": Kind(0.11, (16, 32), (0.06, 0.14), (0.12, 0.25)),
    "medium": Kind(0.06, (8, 20), (0.04, 0.14), (0.05, 0.15)),
    "mixed": Kind(0.06, (0, 16), (0.0, 0.22), (0.0, 0.25)),
    "light": Kind(0.03, (2, 12), (0.0, 0.08), (0.0, 0.08)),
    "flush": Kind(0.03, rim=(0.0, 0.0)),
    "tenths": Kind(0.0, (0, 0), (0.14, 0.22), (0.06, 0.14), cells=(64,), rows=(5, 6, 7), across=(8.5, 10.5)),
    "rims": Kind(0.0, rim=(0.04, 0.12), cells=(50,), rows=(5, 6, 7), across=(8.5, 10.5)),
}
"""Mostly what costs along the contour cannot do; a little of the rest, so that it is not forgotten. The last two,
what 10 x 10 puzzles are made of, are for a last stage (`--kinds`)."""
ENLARGE: Final = 1.45
"""A window is enlarged at most this much, as a 10 x 10 puzzle of 64-pixel cells does a picture of 448 pixels."""


def parse_mixture(text: str) -> dict[str, Kind]:
    """MIXTURE with other weights: "eroded=4,gapped=2" has nothing else in it."""
    chosen = {}
    for part in text.split(","):
        name, _, weight = part.partition("=")
        try:
            chosen[name] = replace(MIXTURE[name], weight=float(weight))
        except (KeyError, ValueError):
            raise bad_value("kinds", "a training", f"NAME=WEIGHT of {', '.join(MIXTURE)}", part) from None
    return chosen


Pictures = Sequence[Sequence[Path]]
"""The pictures of each folder; a folder is drawn first, then a picture of it."""


def pictures_of(folders: Sequence[Path]) -> Pictures:
    """The pictures of some folders, each in one order; InputError for a folder without any."""
    found = [list_images(folder) for folder in folders]
    for folder, paths in zip(folders, found, strict=True):
        if not paths:
            raise InputError(f"The folder '{folder}' must hold pictures. It holds none.")
    return found


def draw_picture(pictures: Pictures, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A picture of a folder, both drawn evenly. Shapes: -> (H, W, 3)."""
    folder = pictures[int(rng.integers(len(pictures)))]
    return read_rgb(folder[int(rng.integers(len(folder)))])


def draw_kind(mixture: Mapping[str, Kind], rng: np.random.Generator) -> str:
    """The name of a kind, by weight."""
    weights = np.array([kind.weight for kind in mixture.values()])
    return list(mixture)[int(rng.choice(len(weights), p=weights / weights.sum()))]


def draw_puzzle(
    pictures: Pictures, mixture: Mapping[str, Kind], seed: int, k: int, presentation: Presentation = "cell"
) -> tuple[Puzzle, Truth, str]:
    """The k-th puzzle of a seed, its truth and its kind; squares fill their pixels in every presentation."""
    rng = np.random.default_rng(derive_seed("learn", seed, k))
    name = draw_kind(mixture, rng)
    kind = mixture[name]
    rgb = draw_picture(pictures, rng)
    shorter = min(rgb.shape[:2])
    # Small pictures are cut into small cells: at least 3 x 3 of them.
    cell = max(min(int(rng.choice(kind.cells)), int(ENLARGE * shorter / 3)), 32)
    pitch = min(max(shorter / rng.uniform(*kind.across), cell / ENLARGE), shorter / 3)
    grid = Grid(*(min(int(rng.choice(kind.rows)), int(side / pitch + 1e-6)) for side in rgb.shape[:2]))
    window = draw_window(rgb, [round(pitch * count) for count in grid.shape], rng)
    cut_seed = int(rng.integers(2**62))
    if kind.rim is not None:
        rim = round(cell * rng.uniform(*kind.rim))
        return *cut_squares(window, SquareOptions(cell, grid, erode=rim), cut_seed), name
    options = CutOptions(grid, cell, kind.damage(rng), presentation=presentation)
    return *cut_picture(window, options, cut_seed, redraw=False), name


def draw_window(rgb: NDArray[np.uint8], sides: Sequence[int], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A random part of a picture. Shapes: (H, W, 3) -> (*sides, 3)."""
    top, left = (int(rng.integers(a - b + 1)) for a, b in zip(rgb.shape[:2], sides, strict=True))
    return np.ascontiguousarray(rgb[top : top + sides[0], left : left + sides[1]])
