"""Pictures as solving shows them: cut or torn and damaged by the generator, put together by the truth, nearly.

A solver's poses are a little off, fragments are missing, borders are straight or ragged, and the whole lies at any
angle. A part of a picture is turned into such an assembly in a frame that is turned at random, and the frame is turned
back at the end, so that nothing but content tells the up: neither how fragments were scanned nor how they were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import MAX_SHAPE, CutOptions, Damage
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import STYLES, Style, TearOptions
from jigsync.learn.contours_mixture import draw_presentation
from jigsync.measure.views import Views, four_turns, picture_view
from jigsync.render.assemble import composed
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values import angles, z4
from jigsync.values.layout import FREE, Grid
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle

Rgb = NDArray[np.uint8]

KINDS: Final = {"whole": 0.15, "cut": 0.55, "torn": 0.3}
"""Shares of pictures as they were, of grids, and of pictures without a grid."""
ROWS: Final = (2, 7)
"""Cells along the shorter side, fewest and most."""
PIECES: Final = (6, 30)
SMALLEST: Final = 16
"""Least side of a cell or a piece, in pixels."""
EROSION: Final = 0.22
TORN_EROSION: Final = 0.06
PHOTO: Final = 0.25
"""Greatest damage of its kind."""
HOLES: Final = 0.3
"""Share of the assemblies of which fragments are missing: up to MISSING of them."""
MISSING: Final = 0.25
TURN_ERROR: Final = math.radians(1.0)
SHIFT_ERROR: Final = 0.01
"""Standard deviations of the errors of poses: an angle, and a share of a fragment's side."""
SKEW: Final = math.radians(3.0)
"""Largest skew of what is upright."""
OBLIQUE: Final = 0.35
"""Share of the samples whose other views lie at any angle, not at quarter turns."""
APART: Final = math.radians(12.0)
"""Least angle of those from upright."""


@dataclass(frozen=True, eq=False)
class Whole:
    """A puzzle, and where its fragments lie in the upright picture, nearly."""

    puzzle: Puzzle
    placement: Placement

    def view(self, angle: float, size: int) -> Views:
        """The assembly after a further turn. Shapes: -> (size, size, 3)."""
        frame = Pose(angle, (0.0, 0.0))
        solution = Solution("ok", "", FREE, {name: placed.moved(frame) for name, placed in self.placement.items()})
        return picture_view(composed(self.puzzle, solution, layout_of(self.puzzle, solution)), size)


def draw_whole(part: Rgb, shrink: float, rng: np.random.Generator) -> Whole:
    """A part of a picture, `shrink` times smaller, damaged and put together. Shapes: part (h, w, 3)."""
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    sides = [max(2 * SMALLEST, int(side / shrink)) for side in part.shape[:2]]
    if kind == "whole":
        return _undamaged(part, sides)
    seed = int(rng.integers(2**62))
    if kind == "cut":
        puzzle, truth = cut_picture(part, _cuts(sides, rng), seed, redraw=False)
    else:
        puzzle, truth = tear_picture(part, _tears(sides, rng), seed)
    return Whole(puzzle, _nearly(truth.placement, math.sqrt(math.prod(sides) / len(puzzle)), rng))


def _undamaged(part: Rgb, sides: Sequence[int]) -> Whole:
    """A puzzle of one fragment."""
    small = cv2.resize(part, (sides[1], sides[0]), interpolation=cv2.INTER_AREA)
    pixels = np.concatenate([small, np.full((*sides, 1), 255, dtype=np.uint8)], axis=2)
    return Whole(Puzzle(Fragments(("f000",), (pixels,))), {"f000": Placed(Pose.of_turns(0, (0.0, 0.0)))})


def _cells(sides: Sequence[int], rng: np.random.Generator) -> tuple[Grid, int]:
    """Cells along the shorter side, as many as fit along the longer one, and their size."""
    cell = max(SMALLEST, round(min(sides) / int(rng.integers(ROWS[0], ROWS[1] + 1))))
    return Grid(*(max(1, round(side / cell)) for side in sides)), cell


def _cuts(sides: Sequence[int], rng: np.random.Generator) -> CutOptions:
    """How a picture of this size is cut."""
    grid, cell = _cells(sides, rng)
    worst = rng.random()  # one severity for all, or nearly: what is heavily worn is rarely fresh in its colours
    damage = Damage(*(top * worst * rng.random() for top in (MAX_SHAPE, EROSION, PHOTO)))
    return CutOptions(grid, cell, damage, presentation=draw_presentation(rng))


def _tears(sides: Sequence[int], rng: np.random.Generator) -> TearOptions:
    """How a picture of this size is torn; jigsaw pieces lie in rows and columns."""
    style: Style = STYLES[int(rng.choice(len(STYLES), p=(0.7, 0.15, 0.15)))]
    area = math.prod(sides)
    pieces = min(int(rng.integers(PIECES[0], PIECES[1] + 1)), area // SMALLEST**2)
    if style == "knobs":
        pieces = max(2, _cells(sides, rng)[0].size)
    size = max(SMALLEST, int(math.sqrt(area / pieces)))
    erosion, photo = (float(top * rng.random()) for top in (TORN_EROSION, PHOTO))
    return TearOptions(pieces, size, style, erosion, photo=photo, presentation=draw_presentation(rng))


def _nearly(placement: Placement, size: float, rng: np.random.Generator) -> Placement:
    """Poses with a solver's errors, some fragments missing; `size` is a fragment's side."""
    gone = rng.random(len(placement)) < (rng.uniform(0, MISSING) if rng.random() < HOLES else 0.0)
    gone[int(rng.integers(len(gone)))] = False
    found = {}
    for (name, placed), away in zip(placement.items(), gone, strict=True):
        error = rng.normal(0, SHIFT_ERROR * size, 2)
        pose = placed.pose
        if pose is None or away:
            found[name] = Placed.nowhere()
        else:
            x, y = (np.array(pose.xy) + error).tolist()
            found[name] = Placed(Pose(pose.angle + rng.normal(0, TURN_ERROR), (x, y)))
    return found


def shown(whole: Whole, size: int, oblique: bool, rng: np.random.Generator) -> Views:
    """The picture upright, and its quarter turns or, if `oblique`, three times at any other angle.

    Shapes: -> (4, size, size, 3).
    """
    frame, skew = int(rng.integers(z4.ORDER)), float(rng.uniform(-SKEW, SKEW))
    others = rng.uniform(APART, angles.FULL - APART, z4.ORDER - 1) if oblique else ()
    turned = [angles.of_turns(frame) + skew + angle for angle in (0.0, *others)]
    views = [z4.turn_pixels(whole.view(angle, size), z4.inverse(frame)) for angle in turned]
    return np.stack(views) if oblique else four_turns(views[0])
