"""Grids from poses: fragments whose poses lie on a lattice have rows and columns.

    phi   = arg(sum exp(4 i angle)) / 4                     the lattice's direction, modulo a quarter turn
    pitch = argmax_p |sum exp(2 pi i u / p)| + |sum exp(2 pi i v / p)|,  (u, v) the positions in that direction

A fragment's centre is the centre of its picture, not of its cell, so positions may be off by a share of the pitch.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.base import Poses
from jigsync.values import angles, z4
from jigsync.values.layout import Grid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST: Final = 4
"""Fragments that can show a lattice."""
ALIGNED: Final = 0.95
"""Least mean of exp(4 i angle): angles that scatter by 4.6 degrees about the four directions."""
PITCHES: Final = (0.85, 1.7, 400)
"""Pitches that are tried, in units of the fragments' size, and their number."""
MIDDLE, MOST = 0.12, 0.30
"""Largest median, and 90th percentile, of a fragment's distance from its cell's centre, in pitches."""
FILLED: Final = 0.5
"""Least share of the grid's cells that hold a fragment."""


class Lattice(NamedTuple):
    """Rows and columns of fragments.

    Shapes: cells (N, 2) as (row, col), turns (N,), -1 and 0 for fragments of other components. canvas_from_frag of the
    poses is turned by `angle` against the grid: upright poses are R(-angle) times those.
    """

    grid: Grid
    cells: Ints
    turns: Ints
    angle: float
    pitch: float


def lattice_of(poses: Poses, sizes: Floats) -> Lattice | None:
    """The lattice that the largest component lies on; None when it lies on none.

    Args:
        sizes: (N,) square root of each fragment's area.
    """
    members = np.flatnonzero(poses.component == 0)
    if len(members) < FEWEST:
        return None
    turned = angles.phase(4 * poses.angle[members]).mean()
    if abs(turned) < ALIGNED:
        return None
    phi = float(np.angle(turned)) / 4
    turns = np.round(angles.wrap(poses.angle[members] - phi) / angles.QUARTER).astype(np.int64) % z4.ORDER
    most = int(np.bincount(turns, minlength=z4.ORDER).argmax())  # most fragments stand upright
    phi, turns = phi + angles.of_turns(most), (turns - most) % z4.ORDER
    uv = angles.act(-phi, poses.xy[members])
    pitch = _pitch(uv, float(np.median(sizes[members])))
    origin = np.angle(np.exp(2j * np.pi * uv / pitch).sum(axis=0)) / (2 * np.pi) * pitch
    at = (uv - origin) / pitch
    cells = np.round(at).astype(np.int64)
    off = np.hypot(*(at - cells).T)
    cells -= cells.min(axis=0)
    cols, rows = (cells.max(axis=0) + 1).tolist()
    if np.median(off) > MIDDLE or np.percentile(off, 90) > MOST or len(np.unique(cells, axis=0)) < len(cells):
        return None
    if len(members) < FILLED * rows * cols:
        return None
    n = len(poses.angle)
    every, every_turns = np.full((n, 2), -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    every[members], every_turns[members] = cells[:, ::-1], turns
    return Lattice(Grid(rows, cols), every, every_turns, float(angles.wrap(phi)), pitch)


def _pitch(uv: Floats, size: float) -> float:
    """The pitch at which positions repeat best; of two that are as good the larger one."""
    least, most, count = PITCHES
    tried = size * np.geomspace(least, most, count)
    waves = np.exp(2j * np.pi * uv[None] / tried[:, None, None]).sum(axis=1)
    strength = np.abs(waves).sum(axis=1)
    good = np.flatnonzero(strength > 0.999 * strength.max())
    return float(tried[good[-1]])
