"""Contours to measure: made up, or read off a small puzzle cut from a bundled picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions, Damage
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.measure.contour import Contours
from jigsync.score.touching import touching
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth


def made_up(fragments: int = 3, samples: int = 7, depth: int = 4, seed: int = 0, cell: float = 20.0) -> Contours:
    """Smooth random colours and offsets, some rows without fragment."""
    rng = np.random.default_rng(seed)
    sides = 4 * fragments
    colour = np.cumsum(rng.normal(0, 0.05, (sides, samples, depth, 3)), axis=2) + rng.uniform(
        0.3, 0.7, (sides, 1, 1, 3)
    )
    valid = rng.random((sides, samples)) > 0.15
    offset = np.where(valid, rng.normal(-0.03, 0.06, (sides, samples)), 0)
    return Contours(cell, np.clip(colour, 0, 1).astype(np.float32), offset.astype(np.float32), valid)


@cache
def cut(
    severity: str | Damage = "clean",
    grid: tuple[int, int] = (3, 4),
    cell: int = 32,
    name: str = "coffee",
    seed: int = 5,
) -> tuple[Puzzle, Truth]:
    """A turned, shuffled puzzle."""
    damage = SEVERITIES[severity] if isinstance(severity, str) else severity
    return cut_picture(read_rgb(picture(name)), CutOptions(Grid(*grid), cell, damage), seed)


def partners(puzzle: Puzzle, truth: Truth) -> np.ndarray:
    """(4N,) the side that touches each side, -1 at the picture's edge."""
    return touching(truth.placement, puzzle.ids)


def turned_sides(n: int, fragment: int, turns: int) -> np.ndarray:
    """(4N,) which side becomes side s when one fragment is stored turned: what faced b faces b + turns."""
    sides = np.arange(4 * n)
    own = sides // 4 == fragment
    return np.where(own, 4 * fragment + (sides - turns) % 4, sides)


def stored_turned(puzzle: Puzzle, turns: Sequence[int]) -> Puzzle:
    """The puzzle as if every fragment had been stored turned further."""
    pixels = tuple(z4.turn_pixels(p, k) for p, k in zip(puzzle.fragments.pixels, turns, strict=True))
    return replace(puzzle, fragments=Fragments(puzzle.ids, pixels))
