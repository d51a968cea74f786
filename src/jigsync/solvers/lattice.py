"""Grids from poses: when free poses lie on a lattice, the answer has rows and columns.

    x_i = o + R(-phi) pitch (col_i, row_i) + noise,      phi in [0, 90) degrees

phi is the direction of the steps between near fragments, modulo a quarter turn: the angle of sum exp(4 i arg(d)). With
phi undone, every fragment's place along an axis is about its cell's number times the pitch: a cropped fragment's centre
is off its cell's. Cells are rounded and the lattice is fitted to them in turn, until they stay.

A lattice is believed when its cells are all taken, each once, and the fragments lie near them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from jigsync.solvers.base import Assignment
from jigsync.solvers.free.seat import seated
from jigsync.values import angles
from jigsync.values.arrangement import Poses
from jigsync.values.cell_frames import CellFrames
from jigsync.values.layout import Grid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST: Final = 4
"""Of fewer fragments nearly any poses are a lattice."""
NEIGHBOURS: Final = 4
"""Nearest fragments whose steps are looked at."""
ROUNDS: Final = 20
OFF: Final = 0.2
"""Root mean square distance from the cells' centres, in pitches, of what is believed. Torn pieces are further off."""
SKEW: Final = np.radians(4.0)
"""Largest angle off a quarter turn at which fragments of a lattice are taken to lie at quarter turns."""


class Lattice(NamedTuple):
    """A grid that poses lie on.

    Attributes:
        grid: its rows and cols.
        cells: (N, 2) int64 (row, col).
        pitch: px, one for both axes.
        angle: the further turn, radians, after which rows lie along x.
        origin: (2,) where, after that turn, the centre of cell (0, 0) is.
    """

    grid: Grid
    cells: Ints
    pitch: float
    angle: float
    origin: Floats


def lattice_of(xy: Floats) -> Lattice | None:
    """The lattice that places lie on, or None. Shapes: xy (N, 2) px."""
    n = len(xy)
    if n < FEWEST:
        return None
    found = cKDTree(xy).query(xy, k=min(NEIGHBOURS, n - 1) + 1)
    distance, near = (np.asarray(part) for part in found)
    pitch = float(np.median(distance[:, 1:3]))
    if pitch <= 0:
        return None
    step = (xy[near[:, 1:]] - xy[:, None]).reshape(-1, 2)
    step = step[np.hypot(*step.T) < 1.3 * pitch]
    phase = np.sum(np.exp(4j * np.arctan2(-step[:, 1], step[:, 0])))
    angle = float(angles.wrap(-np.angle(phase) / 4))  # the steps lie at -angle, counter-clockwise as displayed
    cells = np.zeros((n, 2), dtype=np.int64)
    origin = np.zeros(2)
    for _ in range(ROUNDS):
        at = angles.act(angle, xy)
        before = cells
        origin = _origin(at, pitch)
        cells = np.rint((at - origin) / pitch).astype(np.int64)
        pitch, angle, origin = _fitted(xy, cells)
        if np.array_equal(cells, before) or pitch <= 0:
            break
    if pitch <= 0:
        return None
    low = cells.min(axis=0)
    origin, cells = origin + low * pitch, cells - low
    cols, rows = (cells.max(axis=0) + 1).tolist()
    off = np.hypot(*(angles.act(angle, xy) - origin - cells * pitch).T)
    whole = rows * cols == n and len(np.unique(cells, axis=0)) == n
    if not whole or np.sqrt(np.mean(off**2)) > OFF * pitch:
        return None
    return Lattice(Grid(rows, cols), cells[:, ::-1].copy(), pitch, angle, origin)


def gridded(answer: Assignment) -> Assignment:
    """The answer with rows and columns where its poses have them; else as it is."""
    poses = answer.poses
    if poses is None or not answer or np.any(poses.component != 0):
        return answer
    found = lattice_of(poses.xy)
    if found is None:
        return answer
    angle = angles.wrap(poses.angle + found.angle)
    xy = angles.act(found.angle, poses.xy) - found.origin + found.pitch / 2
    turns = angles.nearest_turns(angle)
    upright = np.abs(angles.wrap(angle - turns * angles.QUARTER)).max() <= SKEW
    cols = found.grid.cols
    slots = found.cells[:, 0] * cols + found.cells[:, 1]
    lying = Poses(angle, xy, poses.component, pitch=found.pitch, quarter=bool(upright))
    return replace(answer, layout=found.grid, slots=slots, turns=turns, poses=lying)


def in_frames(answer: Assignment, frames: CellFrames) -> Assignment:
    """An answer in cells as the poses of fragments whose cells lie like this in their pictures, outlines meeting."""
    if not answer or answer.poses is not None:
        return answer
    row, col = answer.cells.T
    angle, xy = frames.poses(row, col, answer.turns)
    pose = seated(frames, row, col, np.concatenate([xy, angle[:, None]], axis=1))
    xy, angle = pose[:, :2], pose[:, 2]
    component = np.where(answer.slots >= 0, 0, -1)
    more = tuple(in_frames(other, frames) for other in answer.more)
    return replace(answer, poses=Poses(angle, xy, component, pitch=frames.pitch, quarter=frames.quarter), more=more)


def _origin(at: Floats, pitch: float) -> Floats:
    """Where a lattice of this pitch has a point: the circular mean along each axis. Shapes: (N, 2) -> (2,)."""
    phase = np.exp(2j * np.pi * at / pitch).mean(axis=0)
    return np.asarray(np.angle(phase) / (2 * np.pi) * pitch)


def _fitted(xy: Floats, cells: Ints) -> tuple[float, float, Floats]:
    """Pitch, angle and origin that fit best: R(angle) x = origin + pitch cell, by complex least squares.

    With z = x - i y (y up, so that angles are counter-clockwise as displayed) and c likewise, z = a + b c, and b is
    pitch exp(-i angle).
    """
    z, c = (part[:, 0] - 1j * part[:, 1] for part in (xy, cells.astype(np.float64)))
    spread = np.abs(c - c.mean()) ** 2
    if spread.sum() == 0:
        return 0.0, 0.0, np.zeros(2)
    b = np.sum((z - z.mean()) * np.conj(c - c.mean())) / spread.sum()
    pitch, angle = float(np.abs(b)), float(-np.angle(b))
    origin = (angles.act(angle, xy) - pitch * cells).mean(axis=0)
    return pitch, angle, origin
