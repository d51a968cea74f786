"""Where placed fragments stand on the canvas of one picture: the geometry that assembling, marking and animating share.

In a grid the canvas is the grid's: cells are `pitch` pixels apart, cell (0, 0) starts at the corner, and nothing is
drawn outside. Where poses are known in cells only, the centre of a fragment's picture stands on the centre of its cell.
Without a grid the canvas is the box around all that is placed. Components do not claim to be placed towards each other:
they lie side by side with a gap, largest first.

A canvas of more than MAX_PIXELS is drawn at 1/2, 1/3, ... of its size by averaging, so that no file can ask for more
memory than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import z4
from jigsync.values.errors import InputError
from jigsync.values.layout import Grid
from jigsync.values.placement import Assembly, cell_pitch
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

Floats = NDArray[np.float64]

MAX_PIXELS: Final = 100_000_000
"""Largest canvas, in pixels; 400 MB of RGBA."""

GAP: Final = 1 / 8
"""Distance between cells that are pulled apart, in cell pitches; without a grid, centres move apart by this share."""

APART: Final = 1 / 2
"""Distance between two components, in typical fragments."""

ASPECT: Final = 1.4
"""Width : height that rows of components aim at."""

ROUNDING: Final = 1e-6
"""Pixels that are nothing: a fragment this near to whole pixels stands on them."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The canvas of one assembly.

    Attributes:
        full_size: (height, width) of the canvas in fragment pixels.
        poses: canvas_from_frag of every placed fragment, in fragment pixels from the canvas's corner.
        pitch: (height, width) of a cell in fragment pixels; without a grid, of a typical fragment.
        whole: do quarter turns stand on whole pixels, rounded up and left? So in grids.
        shrink: fragment pixels along one canvas pixel, an integer.
        zoom: canvas pixels along one fragment pixel, an integer; one of shrink and zoom is 1.
    """

    full_size: tuple[int, int]
    poses: Mapping[str, Pose]
    pitch: tuple[int, int]
    whole: bool
    shrink: int = 1
    zoom: int = 1

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the canvas in its own pixels."""
        height, width = self.full_size
        return self.zoom * -(-height // self.shrink), self.zoom * -(-width // self.shrink)


def layout_of(puzzle: Puzzle, solution: Assembly, *, gaps: bool = False, at_least: int = 1) -> Layout:
    """The layout of a solution.

    Args:
        gaps: pull the cells apart by GAP, or the fragments where there is no grid.
        at_least: pixels the longer side should have; smaller canvases are zoomed by a whole factor to come near it.

    Raises:
        InputError: the solution failed, or places a fragment that the puzzle does not have.
    """
    if solution.status == "failed":
        why = f" ({solution.reason.rstrip('.')})" if solution.reason else ""
        raise InputError(f"The solution failed{why}: there is no picture to assemble.")
    known = set(puzzle.ids)
    for name, placed in solution.placement.items():
        if placed.pose is not None and name not in known:
            raise InputError(
                f"The fragment '{name}' is placed but is not in the puzzle '{puzzle.name}':"
                " the two must be of the same puzzle."
            )
    grid = solution.grid
    layout = _free(puzzle, solution, gaps) if grid is None else _in_grid(puzzle, solution, grid, gaps)
    height, width = layout.full_size
    shrink = max(1, int(np.ceil(np.sqrt(height * width / MAX_PIXELS))))
    return replace(layout, shrink=shrink, zoom=max(1, round(at_least / max(height, width))))


def _poses_of(solution: Assembly) -> dict[str, Pose]:
    return {name: placed.pose for name, placed in solution.placement.items() if placed.pose is not None}


def _moved(poses: Mapping[str, Pose], centres: Floats) -> dict[str, Pose]:
    """The poses with other centres. Shapes: centres (n, 2), (x, y)."""
    return {
        name: Pose(pose.angle, (x, y), pose.turns)
        for (name, pose), (x, y) in zip(poses.items(), centres.tolist(), strict=True)
    }


def _in_grid(puzzle: Puzzle, solution: Assembly, grid: Grid, gaps: bool) -> Layout:
    """The canvas of a grid: n pitches and n - 1 gaps along each side."""
    pitch = solution.pitch or cell_pitch(puzzle, solution.placement)
    cell = (max(1, round(pitch[0])), max(1, round(pitch[1])))
    gap = (round(cell[0] * GAP), round(cell[1] * GAP)) if gaps else (0, 0)
    height, width = (max(1, round(n * p + (n - 1) * g)) for n, p, g in zip(grid.shape, pitch, gap, strict=True))
    poses = _poses_of(solution)
    step = np.array(pitch[::-1], dtype=np.float64)
    at = np.array([pose.xy for pose in poses.values()]).reshape(-1, 2)
    if solution.pitch is not None:
        at = at / step - 0.5
    # From here on in cells, from the centre of cell (0, 0).
    slots = np.rint(at)
    for k, name in enumerate(poses):
        slot = solution.placement[name].cell
        if slot is not None:
            slots[k] = slot[::-1]
    if solution.pitch is None:
        at = slots
    elif len(slots) and np.abs(np.median(at - slots, axis=0)).max() > 0.5:
        return _free(puzzle, solution, gaps)  # a file may have its origin elsewhere
    return Layout((height, width), _moved(poses, (at + 0.5) * step + slots * gap[::-1]), cell, True)


def _free(puzzle: Puzzle, solution: Assembly, gaps: bool) -> Layout:
    """The box around all that is placed, one component beside the other."""
    pitch = cell_pitch(puzzle, {})
    poses = _poses_of(solution)
    members: dict[int, list[str]] = {}
    for name in poses:
        members.setdefault(solution.placement[name].component, []).append(name)
    blocks = [
        _block(puzzle, {name: poses[name] for name in members[label]}, gaps)
        for label in sorted(members, key=lambda label: (-len(members[label]), label))
    ]
    if not blocks:
        return Layout(pitch, {}, pitch, False)
    corners, size = _shelves([block.full_size for block in blocks], round(APART * max(pitch)))
    placed: dict[str, Pose] = {}
    for block, corner in zip(blocks, corners, strict=True):
        centres = np.array([pose.xy for pose in block.poses.values()]) + corner[::-1]
        placed |= _moved(block.poses, centres)
    return Layout(size, placed, pitch, False)


@dataclass(frozen=True, eq=False)
class _Block:
    """One component in the box around it, widened to whole pixels."""

    full_size: tuple[int, int]
    poses: Mapping[str, Pose]


def _block(puzzle: Puzzle, poses: Mapping[str, Pose], gaps: bool) -> _Block:
    if gaps:
        centres = np.array([pose.xy for pose in poses.values()])
        poses = _moved(poses, centres + GAP * (centres - centres.mean(axis=0)))
    rims = [pose.act(_rim(puzzle.fragments[name])) for name, pose in poses.items()]
    lattice = _lattice(puzzle, poses)
    low = np.floor(np.min([rim.min(axis=0) for rim in rims], axis=0) - lattice + ROUNDING) + lattice
    high = np.max([rim.max(axis=0) for rim in rims], axis=0)
    width, height = (max(1, math.ceil(side - ROUNDING)) for side in high - low)
    centres = np.array([pose.xy for pose in poses.values()]) - low
    return _Block((height, width), _moved(poses, centres))


def _lattice(puzzle: Puzzle, poses: Mapping[str, Pose]) -> Floats:
    """Where pixels begin, modulo 1: those of the first fragment at a quarter turn, so that it can be copied."""
    for name, pose in poses.items():
        if pose.turns is not None:
            height, width = z4.turned_shape(puzzle.fragments[name].shape[:2], pose.turns)
            return np.array([pose.xy[0] - width / 2, pose.xy[1] - height / 2]) % 1.0
    return np.zeros(2)


def _rim(pixels: Pixels) -> Floats:
    """Corners of the first and last visible pixel of every row, from the picture's centre. Shapes: -> (K, 2)."""
    visible = pixels[..., 3] > 0
    rows = np.flatnonzero(visible.any(axis=1))
    height, width = visible.shape
    if not rows.size:
        return np.zeros((1, 2))
    first, last = visible[rows].argmax(axis=1), width - visible[rows, ::-1].argmax(axis=1)
    corners = [(x, y) for x in (first, last) for y in (rows, rows + 1)]
    rim = np.concatenate([np.stack(corner, axis=1) for corner in corners])
    return rim - np.array([width, height]) / 2


def _shelves(sizes: list[tuple[int, int]], gap: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Boxes in rows, in the given order: their (top, left) corners, and (height, width) of all."""
    area = sum((height + gap) * (width + gap) for height, width in sizes)
    room = max(math.sqrt(area * ASPECT), *(width for _, width in sizes))
    corners, top, left, row = [], 0, 0, 0
    widest = 0
    for height, width in sizes:
        if left and left + width > room:
            top, left, row = top + row + gap, 0, 0
        corners.append((top, left))
        widest = max(widest, left + width)
        left, row = left + width + gap, max(row, height)
    return corners, (top + row, widest)
