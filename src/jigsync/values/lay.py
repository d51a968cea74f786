"""The truth of a photograph of fragments that lie on a table.

    x_table = scale R(angle) (x_frag - c_frag) + xy          c_frag the centre of the fragment's PNG, `table_from_frag`
    x_photo = (X / Z, Y / Z),   (X, Y, Z) = photo_from_table (x_table, y_table, 1)

Both frames have x right, y down, pixel (row r, col c) covers [c, c+1] x [r, r+1], and the table's unit is the pixel
that the photograph has at its centre: a camera that looks straight down has photo_from_table = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles
from jigsync.values.pose import Pose

Floats = NDArray[np.float64]

JPEG_FILE: Final = "photo.jpg"
PNG_FILE: Final = "photo.png"


@dataclass(frozen=True, eq=False)
class Laid:
    """Where one fragment lies.

    Attributes:
        table_from_frag: its pose on the table; the scale is the photograph's.
        outline: (L, 2) float64 as (x, y) in the photograph, clockwise as displayed, where alpha is one half.
        box: (top, left, height, width) in the photograph: the pixels that its outline reaches.
    """

    table_from_frag: Pose
    outline: Floats
    box: tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Card:
    """A white rectangle of known size that lies beside the fragments.

    Attributes:
        size_mm: its longer and its shorter side.
        corners: (4, 2) float64 as (x, y) in the photograph, clockwise as displayed; a longer side comes first.
    """

    size_mm: tuple[float, float]
    corners: Floats


@dataclass(frozen=True, eq=False)
class Lay:
    """What is to be seen on a photograph.

    Attributes:
        height, width: of the photograph, px.
        background: the kind of the table.
        mm_per_pixel: at the photograph's centre.
        scale: pixels of the table for one pixel of the fragments.
        photo_from_table: (3, 3) float64.
        fragments: id -> Laid.
        touching: pairs of ids that lie edge to edge, each in the order of its names.
        card: None when there is none.
        photo: name of the photograph's file, beside this one.
        options, seed: what the photograph was asked for with; plain JSON values.
    """

    height: int
    width: int
    background: str
    mm_per_pixel: float
    scale: float
    photo_from_table: Floats
    fragments: Mapping[str, Laid]
    touching: frozenset[tuple[str, str]] = frozenset()
    card: Card | None = None
    photo: str = JPEG_FILE
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def photo_from_frag(self, name: str) -> tuple[Pose, float]:
        """(pose, scale) of the similarity that the exact map is nearest to, at the fragment's centre.

        x_photo = scale R(angle) (x_frag - c_frag) + xy. Exact where the camera looks straight down.
        """
        pose = self.fragments[name].table_from_frag
        at, slope = tangent(self.photo_from_table, pose.xy)
        turned = slope @ angles.matrix(pose.angle) if pose.turns is None else slope @ pose.matrix[:, :2]
        straight = np.array_equal(slope, np.eye(2))
        turns = pose.turns if straight else None
        scale = self.scale * float(np.sqrt(np.linalg.det(slope)))
        return Pose(angles.nearest(turned), (float(at[0]), float(at[1])), turns), scale


def project(dst_from_src: Floats, points: Floats) -> Floats:
    """A homography's image of points. Shapes: (3, 3), (..., 2) as (x, y) -> (..., 2)."""
    mapped = points @ dst_from_src[:, :2].T + dst_from_src[:, 2]
    return np.asarray(mapped[..., :2] / mapped[..., 2:])


def tangent(dst_from_src: Floats, point: tuple[float, float]) -> tuple[Floats, Floats]:
    """(image of a point, (2, 2) derivative there) of a homography."""
    x, y, z = dst_from_src @ np.array([*point, 1.0])
    at = np.array([x, y]) / z
    return at, (dst_from_src[:2, :2] - at[:, None] * dst_from_src[2, :2]) / z
