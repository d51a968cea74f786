"""Piles of every kind that confidences are fitted on and checked on, as pure functions of (row, pictures, seed)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from jigsync.corpus.piles import Cut, Pile, pile
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.handed import Presentation
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.values.layout import Grid

Rgb = NDArray[np.uint8]
Lying = Presentation | Literal["tears", "worn tears", "knobs"]

ROWS: Final = ("cell", "cropped", "any", "tears", "worn tears", "missing", "foreign", "two pictures")
"""What is fitted on."""
PILES: Final = ("missing", "foreign", "two pictures")
LYING: Final[tuple[Lying, ...]] = ("cell", "cropped", "any", "tears", "worn tears")
"""How fragments of a pile lie, in turn."""
EASY: Final = ("light", "medium")
"""Severities of piles."""
WEAR: Final = {"light": 0.02, "medium": 0.04, "heavy": 0.06, "severe": 0.09, "eroded": 0.12}
"""Most that is taken off the edges of worn tears, of a piece's size; rims and photometry go with it."""
CELL: Final = 96
NEEDED: Final = 5
"""Pictures of a pile, at most: two pictures, or one and three strangers."""


@dataclass(frozen=True)
class Recipe:
    """One pile.

    Attributes:
        row: of the study.
        lying: presentation of cut fragments, or how they are torn.
        severity: of cut fragments, and of worn tears.
        grid, other: of the first picture and the second one.
        pieces: of torn ones.
        missing, foreign: fragments.
    """

    row: str
    lying: Lying
    severity: str
    grid: Grid
    other: Grid
    pieces: int
    missing: int
    foreign: int


def draw(row: str, number: int, seed: int, floors: bool = False) -> Recipe:
    """A recipe. Severities are between light and eroded; of piles, and of all with `floors`, light and medium."""
    rng = np.random.default_rng(derive_seed(seed, "recipe", row, number))
    lying: Lying = LYING[number % len(LYING)] if row in PILES else row  # type: ignore[assignment]
    severities = EASY if row in PILES or floors else [name for name in SEVERITIES if name != "clean"]
    grids = (Grid(4, 5), Grid(5, 5)) if floors else (Grid(3, 3), Grid(3, 4), Grid(4, 5), Grid(5, 5), Grid(4, 6))
    grid, other = (grids[int(rng.integers(len(grids)))] for _ in range(2))
    few = int(rng.integers(1, 4))
    return Recipe(
        row,
        lying,
        str(rng.choice(severities)),
        grid,
        other if floors or other.size > 9 else Grid(3, 4),
        int(rng.integers(12, 26)),
        few if row == "missing" else 0,
        int(rng.integers(0, 4)) if row == "missing" and floors else few if row == "foreign" else 0,
    )


def make(recipe: Recipe, pictures: Sequence[Rgb], seed: int) -> Pile:
    """The pile; NEEDED pictures. The first one is put together, and perhaps the second."""
    rng = np.random.default_rng(derive_seed(seed, "pile"))

    def cut(rgb: Rgb, grid: Grid, pieces: int) -> Cut:
        number = int(rng.integers(2**31))
        if recipe.lying in ("tears", "worn tears", "knobs"):
            return tear_picture(rgb, _tearing(recipe, pieces, rng), number)
        presentation: Presentation = recipe.lying  # type: ignore[assignment]
        return cut_picture(rgb, CutOptions(grid, CELL, SEVERITIES[recipe.severity], presentation=presentation), number)

    first = cut(pictures[0], recipe.grid, recipe.pieces)
    if recipe.row == "two pictures":
        return pile([first, cut(pictures[1], recipe.other, int(rng.integers(12, 26)))], rng)
    others = [cut(rgb, Grid(3, 3), 9)[0] for rgb in pictures[1 : 1 + recipe.foreign]]
    return pile([first], rng, recipe.missing, others)


def _tearing(recipe: Recipe, pieces: int, rng: np.random.Generator) -> TearOptions:
    if recipe.lying == "knobs":
        return TearOptions(pieces - pieces % 4, CELL, "knobs")  # a number that fills rows and columns
    if recipe.lying == "tears":
        return TearOptions(pieces, CELL)
    wear = WEAR[recipe.severity]
    rim = float(rng.uniform(0, 0.5 * wear * CELL))
    return TearOptions(pieces, CELL, "tear", float(rng.uniform(0.5, 1.0) * wear), rim, 3 * wear)
