"""Where fragments go: a pose, perhaps a cell, or nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from jigsync.values import z4
from jigsync.values.errors import FormatError, bad_value
from jigsync.values.layout import Grid, Layout
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

Status = Literal["ok", "unsure", "partial", "failed"]
Pitch = tuple[float, float]
"""(height, width) of a cell in pixels."""


@dataclass(frozen=True)
class Placed:
    """One fragment's place in the assembled picture.

    Attributes:
        pose: canvas_from_frag; None when the fragment is unplaced.
        cell: (row, col) where the layout is a grid.
        confidence: the probability that the place is right, or None when nobody said.
        component: fragments of different components do not claim to be placed towards each other.
    """

    pose: Pose | None
    cell: tuple[int, int] | None = None
    confidence: float | None = None
    component: int = 0

    def __post_init__(self) -> None:
        if self.pose is None and self.cell is not None:
            raise FormatError(f"A fragment has cell {self.cell} and no pose: an unplaced fragment has neither.")
        if self.confidence is not None and not 0.0 <= self.confidence <= 1.0:
            raise bad_value("confidence", "a fragment", "between 0 and 1", self.confidence)
        if self.component < 0:
            raise bad_value("component", "a fragment", "an integer of at least 0", self.component)

    @classmethod
    def at(
        cls, row: int, col: int, turns: int, confidence: float | None = None, *, pitch: Pitch | None = None
    ) -> Placed:
        """In a cell of a grid, upright after `turns`: np.rot90(stored, turns) stands in the picture.

        The fragment's centre stands on the cell's centre: ((col + 1/2) width, (row + 1/2) height) of the pitch in
        pixels. Without a pitch the unit is one cell and the centre of cell (0, 0) is the origin.
        """
        if isinstance(turns, bool) or not 0 <= turns < z4.ORDER:
            raise bad_value("turns", "a fragment", "0, 1, 2 or 3", turns)
        if pitch is None:
            return cls(Pose.of_cell(row, col, turns), (row, col), confidence)
        height, width = pitch
        return cls(Pose.of_turns(turns, ((col + 0.5) * width, (row + 0.5) * height)), (row, col), confidence)

    @classmethod
    def nowhere(cls, confidence: float | None = None) -> Placed:
        """Unplaced."""
        return cls(None, None, confidence)

    @property
    def row(self) -> int | None:
        """The cell's row, where there is one."""
        return None if self.cell is None else self.cell[0]

    @property
    def col(self) -> int | None:
        """The cell's column, where there is one."""
        return None if self.cell is None else self.cell[1]

    @property
    def turns(self) -> int:
        """Quarter turns of a fragment that has a cell or stands at one exactly; 0 for an unplaced one."""
        if self.pose is None:
            return 0
        if self.pose.turns is None:
            raise FormatError(f"A fragment at {self.pose.degrees:g} degrees has no quarter turns: ask its pose.")
        return self.pose.turns

    def moved(self, new_from_old: Pose) -> Placed:
        """The same fragment in another canvas; its cell is forgotten unless the caller knows the new one."""
        return self if self.pose is None else replace(self, pose=new_from_old.compose(self.pose), cell=None)


Placement = Mapping[str, Placed]


def check_placement(placement: Placement, grid: Grid) -> None:
    """Raises FormatError when a cell lies outside the grid or holds two fragments."""
    taken: dict[tuple[int, int, int], str] = {}
    for name, placed in placement.items():
        if placed.cell is None:
            continue
        if not grid.contains(*placed.cell):
            raise FormatError(f"The fragment '{name}' is at cell {placed.cell}, outside the {grid} grid.")
        key = (*placed.cell, placed.component)
        if key in taken:
            raise FormatError(f"The fragments '{taken[key]}' and '{name}' are both at cell {placed.cell}.")
        taken[key] = name


def turn_placement(
    placement: Placement, grid: Grid, turns: int, pitch: Pitch | None = None
) -> tuple[dict[str, Placed], Grid]:
    """The same assembly in another gauge: cells and poses turn as a whole, by R(g)(x - m) + m'.

    m and m' are the centres of the picture before and after: (cols width / 2, rows height / 2), or in cells
    ((cols - 1) / 2, (rows - 1) / 2).
    """
    after = grid.turned(turns)
    new_from_old = Pose.of_turns(0, centre_of(after, turned_pitch(pitch, turns))).compose(
        Pose.of_turns(turns, (0.0, 0.0)).compose(Pose.of_turns(0, centre_of(grid, pitch)).inverse())
    )
    turned = {}
    for name, placed in placement.items():
        moved = placed.moved(new_from_old)
        if placed.cell is not None:
            moved = replace(moved, cell=z4.turn_cell(placed.cell, grid.shape, turns))
        turned[name] = moved
    return turned, after


def turned_pitch(pitch: Pitch | None, turns: int) -> Pitch | None:
    """A cell's (height, width) after a global turn."""
    return pitch if pitch is None or turns % 2 == 0 else (pitch[1], pitch[0])


def centre_of(grid: Grid, pitch: Pitch | None) -> tuple[float, float]:
    """(x, y) of the middle of a grid's picture, in the unit of its poses (`Placed.at`)."""
    if pitch is None:
        return (grid.cols - 1) / 2, (grid.rows - 1) / 2
    return grid.cols * pitch[1] / 2, grid.rows * pitch[0] / 2


def cell_pitch(puzzle: Puzzle, placement: Placement) -> tuple[int, int]:
    """(height, width) of a grid's cells in pixels: the puzzle's hint, or else estimated from the fragments.

    Rectangles that fill their pixels: the median upright height and width. Any other shapes: a square of the mean
    fragment's area, which is the cell exactly where fragments tile the picture.
    """
    if puzzle.cell is not None:
        return puzzle.cell, puzzle.cell
    if all(pixels[..., 3].min() == 255 for pixels in puzzle.fragments.pixels):
        turns = [placed.turns if (placed := placement.get(name)) else 0 for name in puzzle.ids]
        sizes = [z4.turned_shape(pixels.shape[:2], k) for pixels, k in zip(puzzle.fragments.pixels, turns, strict=True)]
        height, width = (max(1, round(float(side))) for side in np.median(sizes, axis=0))
        return height, width
    area = sum(float(pixels[..., 3].sum(dtype=np.int64)) for pixels in puzzle.fragments.pixels) / 255 / len(puzzle)
    side = max(1, round(float(np.sqrt(area))))
    return side, side


class Assembly(Protocol):
    """What can be drawn: a `jigsync.solution.Solution`, or anything like it."""

    @property
    def status(self) -> Status:
        """ "failed" when there is nothing to show."""

    @property
    def reason(self) -> str:
        """Why, one sentence."""

    @property
    def layout(self) -> Layout:
        """What the poses fit."""

    @property
    def placement(self) -> Placement:
        """id -> Placed."""

    @property
    def pitch(self) -> Pitch | None:
        """Of a grid's cells in pixels, where it is known."""

    @property
    def grid(self) -> Grid | None:
        """The grid, where the layout is one."""
