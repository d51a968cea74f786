"""A fragment's place as files have it, the same in truths and solutions.

    format 2   {"angle": degrees, "x": px, "y": px}, and where there is a grid "row", "col", "turns" beside them
    format 1   {"row", "col", "turns"}: cells only, read and never written where pixels are known

x_canvas = R(angle)(x_frag - c_frag) + (x, y), counter-clockwise as displayed, c_frag the centre of the fragment's PNG,
unit one pixel of the PNGs. An unplaced fragment has null for all of them. "turns" is null where the angle is no quarter
turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from jigsync.io.schema import Node
from jigsync.values import z4
from jigsync.values.layout import FREE, Grid, Layout
from jigsync.values.placement import Pitch, Placed, Placement
from jigsync.values.pose import Pose

MAX_XY: Final = 1e7
"""Farthest a fragment may lie from the origin, px."""
MAX_COMPONENT: Final = 1_000_000
POSE: Final = ("angle", "x", "y")
AGREE: Final = 1e-6
"""Degrees that the angle may differ from its quarter turns."""


def layout_json(layout: Layout, pitch: Pitch | None) -> dict[str, Any]:
    """The keys that say what the poses fit."""
    if not isinstance(layout, Grid):
        return {"layout": "free"}
    return {"layout": "grid", "grid": list(layout.shape), "pitch": None if pitch is None else list(pitch)}


def pose_json(placed: Placed, layout: Layout) -> dict[str, Any]:
    """A fragment's place in format 2."""
    pose = placed.pose
    value: dict[str, Any] = {"angle": None, "x": None, "y": None}
    if pose is not None:
        value = {"angle": pose.degrees, "x": pose.xy[0], "y": pose.xy[1]}
    if isinstance(layout, Grid):
        value |= {"row": placed.row, "col": placed.col, "turns": None if pose is None else pose.turns}
    return value


def parse_layout(root: Node) -> Layout:
    """The layout of a file of format 2."""
    kind = root.key("layout")
    if kind.value not in ("grid", "free"):
        raise kind.refuse("'grid' or 'free'")
    return root.key("grid").grid() if kind.value == "grid" else FREE


def _pitch(root: Node) -> Pitch | None:
    """A grid's pitch, where the file says one."""
    node = root.key("pitch").optional() if root.has("pitch") else None
    if node is None:
        return None
    height, width = (entry.number(1e-3, MAX_XY) for entry in node.entries(2))
    return height, width


def fitted_pitch(placement: Placement) -> Pitch:
    """(height, width) that fits x = (col + 1/2) width and y = (row + 1/2) height best; 1 px where nothing is placed."""
    at = [(placed.cell, placed.pose.xy) for placed in placement.values() if placed.cell and placed.pose]
    if not at:
        return 1.0, 1.0
    cells = np.array([cell for cell, _ in at], dtype=np.float64)
    yx = np.array([xy[::-1] for _, xy in at])
    centred, moved = cells - cells.mean(axis=0), yx - yx.mean(axis=0)
    spread = np.square(centred).sum(axis=0)
    slope = np.where(spread > 0, (centred * moved).sum(axis=0) / np.maximum(spread, 1e-12), 0.0)
    height, width = (float(abs(value)) for value in slope)
    return height or width or 1.0, width or height or 1.0


def _pose(node: Node, layout: Layout) -> Placed:
    """A fragment's place in format 2."""
    angle, x, y = (node.key(key).optional() for key in POSE)
    cell = _cell(node, layout) if isinstance(layout, Grid) else None
    if angle is None and x is None and y is None:
        if cell is not None:
            raise node.refuse("a fragment without row and col, as it has no pose")
        return Placed.nowhere()
    if angle is None or x is None or y is None:
        raise node.refuse("a fragment whose angle, x and y are all numbers or all null")
    xy = x.number(-MAX_XY, MAX_XY), y.number(-MAX_XY, MAX_XY)
    pose = Pose.of_degrees(angle.number(-360.0, 360.0), xy)
    turns = node.key("turns").optional() if isinstance(layout, Grid) and node.has("turns") else None
    if turns is not None:
        exact = Pose.of_turns(turns.integer(0, z4.ORDER - 1), xy)
        if abs((pose.degrees - exact.degrees + 180) % 360 - 180) > AGREE:
            raise node.refuse("a fragment whose angle is 90 degrees times its turns")
        pose = exact
    return Placed(pose, cell)


def parse_cell(node: Node, grid: Grid | None, *, required: bool = False) -> Placed:
    """A fragment's place in format 1; `required`: it must have one."""
    turns = node.key("turns").integer(0, z4.ORDER - 1)
    if required and grid is not None:
        cell: tuple[int, int] | None = (
            node.key("row").integer(0, grid.rows - 1),
            node.key("col").integer(0, grid.cols - 1),
        )
    else:
        cell = _cell(node, grid)
    return Placed.nowhere() if cell is None else Placed.at(*cell, turns)


def parse_all(root: Node, layout: Layout) -> tuple[dict[str, tuple[Placed, Node]], Pitch | None]:
    """id -> place and the rest of what a file of format 2 says of every fragment, and the pitch of a grid: as the file
    says, or as its poses and cells have it where other tools leave it out."""
    found = {name: (_pose(node, layout), node) for name, node in fragments(root).items()}
    if not isinstance(layout, Grid):
        return found, None
    return found, _pitch(root) or fitted_pitch({name: placed for name, (placed, _) in found.items()})


def fragments(root: Node) -> Mapping[str, Node]:
    """id -> what a file says of every fragment."""
    found = dict(root.key("fragments").items())
    for name in found:
        Node(name, root.file, "fragments").fragment_id()
    return found


def _cell(node: Node, grid: Grid | None) -> tuple[int, int] | None:
    row, col = node.key("row").optional(), node.key("col").optional()
    if row is None and col is None:
        return None
    if row is None or col is None:
        raise node.refuse("a fragment whose row and col are both numbers or both null")
    if grid is None:
        raise node.refuse("unplaced (row and col null), as the solution names no grid")
    return row.integer(0, grid.rows - 1), col.integer(0, grid.cols - 1)
