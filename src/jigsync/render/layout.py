"""Where the pixels of a placed fragment go: the geometry that assembling and marking share.

The centre of a fragment's container stands on the centre of its cell; cells are `pitch` pixels apart. Row 0 and
col 0 start at the canvas's corner and nothing is drawn outside the grid. A canvas of more than MAX_PIXELS is drawn
at 1/2, 1/3, ... of its size by averaging, so that no grid in a file can ask for more memory than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.errors import InputError
from jigsync.values.layout import Grid
from jigsync.values.placement import Assembly, Placed, cell_pitch
from jigsync.values.puzzle import Pixels, Puzzle

MAX_PIXELS: Final = 100_000_000
"""Largest canvas, in pixels; 400 MB of RGBA."""

GAP: Final = 1 / 8
"""Distance between cells that are pulled apart, in cell pitches."""


@dataclass(frozen=True)
class Layout:
    """The canvas of one assembly.

    Attributes:
        grid: rows and cols of the assembly.
        pitch: (height, width) of a cell in fragment pixels.
        gap: (vertical, horizontal) distance between two cells in fragment pixels.
        shrink: fragment pixels along one canvas pixel, an integer.
        zoom: canvas pixels along one fragment pixel, an integer; one of shrink and zoom is 1.
    """

    grid: Grid
    pitch: tuple[int, int]
    gap: tuple[int, int] = (0, 0)
    shrink: int = 1
    zoom: int = 1

    @property
    def full_size(self) -> tuple[int, int]:
        """(height, width) of the canvas in fragment pixels."""
        height, width = (n * p + (n - 1) * g for n, p, g in zip(self.grid.shape, self.pitch, self.gap, strict=True))
        return height, width

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the canvas in its own pixels."""
        height, width = self.full_size
        return self.zoom * -(-height // self.shrink), self.zoom * -(-width // self.shrink)

    def corner(self, cell: tuple[int, int], shape: tuple[int, ...]) -> tuple[int, int]:
        """(top, left), in fragment pixels, of an upright container of `shape` (height, width) placed at a cell.

        top = row (pitch + gap) + (pitch - height) / 2, rounded down.
        """
        top, left = (
            k * (p + g) + (p - side) // 2 for k, p, g, side in zip(cell, self.pitch, self.gap, shape[:2], strict=True)
        )
        return top, left


@dataclass(frozen=True, eq=False)
class Drawn:
    """One placed fragment, upright and cut to what can be seen of it: pixels go to canvas[top:, left:]."""

    name: str
    placed: Placed
    top: int
    left: int
    pixels: Pixels

    @property
    def region(self) -> tuple[slice, slice]:
        """The part of the canvas it covers."""
        height, width = self.pixels.shape[:2]
        return slice(self.top, self.top + height), slice(self.left, self.left + width)


def layout_of(puzzle: Puzzle, solution: Assembly, *, gaps: bool = False, at_least: int = 1) -> Layout:
    """The layout of a solution.

    Args:
        gaps: pull the cells apart by GAP.
        at_least: pixels the longer side should have; smaller canvases are zoomed by a whole factor to come near it.

    Raises:
        InputError: the solution failed, or places a fragment that the puzzle does not have.
    """
    if solution.status == "failed":
        why = f" ({solution.reason.rstrip('.')})" if solution.reason else ""
        raise InputError(f"The solution failed{why}: there is no picture to assemble.")
    known = set(puzzle.ids)
    for name, placed in solution.placement.items():
        if placed.cell is not None and name not in known:
            raise InputError(
                f"The fragment '{name}' is placed but is not in the puzzle '{puzzle.name}':"
                " the two must be of the same puzzle."
            )
    grid = solution.layout
    if not isinstance(grid, Grid):
        raise InputError("The solution has no grid: its fragments lie freely.")
    pitch = cell_pitch(puzzle, solution.placement)
    gap = (round(pitch[0] * GAP), round(pitch[1] * GAP)) if gaps else (0, 0)
    height, width = Layout(grid, pitch, gap).full_size
    shrink = max(1, int(np.ceil(np.sqrt(height * width / MAX_PIXELS))))
    return Layout(grid, pitch, gap, shrink, max(1, round(at_least / max(height, width))))


def drawn_fragments(puzzle: Puzzle, solution: Assembly, layout: Layout) -> Iterator[Drawn]:
    """The placed fragments in the puzzle's order, which no gauge changes; those outside the canvas are left out."""
    for name, stored in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        placed = solution.placement.get(name)
        if placed is None or placed.cell is None:
            continue
        upright = z4.turn_pixels(stored, placed.turns)
        top, left = layout.corner(placed.cell, upright.shape)
        box = _visible(upright[..., 3], top, left, layout.full_size)
        if box is None:
            continue
        pixels = upright[box]
        top, left = top + box[0].start, left + box[1].start
        if layout.shrink > 1:
            top, left, pixels = _shrink(pixels, top, left, layout.shrink)
        if (zoom := layout.zoom) > 1:
            top, left, pixels = top * zoom, left * zoom, pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
        yield Drawn(name, placed, top, left, pixels)


def _visible(alpha: NDArray[np.uint8], top: int, left: int, canvas: tuple[int, int]) -> tuple[slice, slice] | None:
    """The smallest box of a fragment at (top, left) that holds all of it that is on the canvas."""
    box = []
    for axis, first in enumerate((top, left)):
        used = np.flatnonzero(alpha.any(axis=1 - axis))
        if used.size == 0:
            return None
        start, stop = max(int(used[0]), -first), min(int(used[-1]) + 1, canvas[axis] - first)
        if start >= stop:
            return None
        box.append(slice(start, stop))
    return box[0], box[1]


def _shrink(pixels: Pixels, top: int, left: int, k: int) -> tuple[int, int, Pixels]:
    """Averages k x k blocks of the canvas; pixels off the fragment count as transparent.

    Premultiplied colours may be averaged like this, straight ones may not.
    """
    height, width = pixels.shape[:2]
    before = (top % k, left % k)
    after = (-(before[0] + height) % k, -(before[1] + width) % k)
    padded = np.pad(pixels, ((before[0], after[0]), (before[1], after[1]), (0, 0)))
    rows, cols = padded.shape[0] // k, padded.shape[1] // k
    sums = padded.reshape(rows, k, cols, k, 4).sum(axis=(1, 3), dtype=np.uint32)
    return top // k, left // k, ((sums + k * k // 2) // (k * k)).astype(np.uint8)
