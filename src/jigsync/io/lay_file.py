"""What `jigsync lay` leaves behind: a photograph of fragments on a table, and lay.json, its truth.

    {"format": "jigsync-lay/1", "photo": "photo.jpg | photo.png", "size": [height, width], "background": kind,
     "mm_per_pixel": at the photograph's centre, "scale": pixels of the table for one of the fragments,
     "photo_from_table": [[..3], [..3], [..3]],
     "fragments": {id: {"table_from_frag": {"angle", "x", "y"}, "photo_from_frag": {"angle", "x", "y", "scale"},
                        "box": [top, left, height, width], "outline": [[x, y], ...]}},
     "touching": [[id, id], ...], "card": null | {"size_mm": [longer, shorter], "corners": [[x, y], ...4]},
     "options": {...}, "seed": int}

    x_table = scale R(angle) (x_frag - c_frag) + (x, y),     x_photo = photo_from_table x_table (a homography)

Angles are degrees counter-clockwise as displayed, c_frag is the centre of the fragment's PNG, pixel (row r, col c)
covers [c, c+1] x [r, r+1]. `photo_from_frag` is the similarity that the two maps together are nearest to at the
fragment's centre; it follows from the others and is checked against them. Outlines and corners run clockwise as
displayed.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from jigsync.io.files import StrPath, atomic_folder, read_json, write_json
from jigsync.io.images import jpeg_bytes, png_bytes
from jigsync.io.placement_json import MAX_XY, fragments
from jigsync.io.schema import Node
from jigsync.io.truth_file import MAX_SEED
from jigsync.values.lay import JPEG_FILE, PNG_FILE, Card, Floats, Laid, Lay, tangent
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels

FORMAT: Final = "jigsync-lay/1"
LAY_FILE: Final = "lay.json"
OURS: Final = (JPEG_FILE, PNG_FILE, LAY_FILE)
"""All that such a folder may hold."""
MAX_PHOTO_SIDE: Final = 100_000
MAX_FRAGMENTS: Final = 5000
MAX_CORNERS: Final = 20_000
"""Of one outline."""
LONGEST_KIND: Final = 64
NEAREST: Final = 1e-6
"""Least denominator of the homography at a fragment."""
AGREE: Final = 1e-3
"""Degrees, pixels and shares that `photo_from_frag` may be off."""


def save_lay(folder: StrPath, pixels: Pixels, lay: Lay, quality: int, *, overwrite: bool = False) -> None:
    """Writes the photograph and its truth; the whole folder appears at once, or not at all.

    Args:
        folder: must be empty, not exist, or hold only what an earlier call wrote, to overwrite.
        pixels: (H, W, 3) uint8.
        lay: the truth; its `photo` says whether pixels go into a JPEG or a PNG.
        quality: of the JPEG, 1 .. 100.
        overwrite: replace what an earlier call wrote.
    """
    data = png_bytes(pixels) if lay.photo == PNG_FILE else jpeg_bytes(pixels, quality)
    with atomic_folder(folder, overwrite=overwrite, ours=OURS) as temporary:
        (temporary / lay.photo).write_bytes(data)
        write_json(temporary / LAY_FILE, lay_json(lay))


def lay_json(lay: Lay) -> dict[str, Any]:
    """The value of lay.json."""
    entries = {}
    for name, laid in lay.fragments.items():
        pose, scale = lay.photo_from_frag(name)
        entries[name] = {
            "table_from_frag": _pose_json(laid.table_from_frag),
            "photo_from_frag": {**_pose_json(pose), "scale": scale},
            "box": list(laid.box),
            "outline": laid.outline.tolist(),
        }
    card = lay.card
    return {
        "format": FORMAT,
        "photo": lay.photo,
        "size": [lay.height, lay.width],
        "background": lay.background,
        "mm_per_pixel": lay.mm_per_pixel,
        "scale": lay.scale,
        "photo_from_table": lay.photo_from_table.tolist(),
        "fragments": entries,
        "touching": [list(pair) for pair in sorted(lay.touching)],
        "card": None if card is None else {"size_mm": list(card.size_mm), "corners": card.corners.tolist()},
        "options": dict(lay.options),
        "seed": lay.seed,
    }


def load_lay(path: StrPath) -> Lay:
    """Reads lay.json."""
    return parse_lay(Node(read_json(path), os.fspath(path)))


def parse_lay(root: Node) -> Lay:
    """The truth of a parsed lay.json."""
    root.format(FORMAT)
    photo, kind = root.key("photo"), root.key("background")
    if photo.value not in (JPEG_FILE, PNG_FILE):
        raise photo.refuse(f"'{JPEG_FILE}' or '{PNG_FILE}'")
    if not 1 <= len(kind.text()) <= LONGEST_KIND:
        raise kind.refuse(f"a kind of table in at most {LONGEST_KIND} letters")
    height, width = (side.integer(1, MAX_PHOTO_SIDE) for side in root.key("size").entries(2))
    node = root.key("photo_from_table")
    matrix = np.array([[entry.number(-MAX_XY, MAX_XY) for entry in row.entries(3)] for row in node.entries(3)])
    if not np.linalg.det(matrix) > 0:
        raise node.refuse("a homography that turns nothing over")
    found = fragments(root)
    if not 1 <= len(found) <= MAX_FRAGMENTS:
        raise root.key("fragments").refuse(f"an object of 1 to {MAX_FRAGMENTS} fragments")
    laid = {name: _parse_laid(entry, matrix, (height, width)) for name, entry in found.items()}
    lay = Lay(
        height=height,
        width=width,
        background=kind.text(),
        mm_per_pixel=root.key("mm_per_pixel").number(1e-6, 1e6),
        scale=root.key("scale").number(1e-6, 1e6),
        photo_from_table=matrix,
        fragments=laid,
        touching=frozenset(_pair(pair, laid) for pair in root.key("touching").entries()),
        card=None if (card := root.key("card").optional()) is None else _parse_card(card),
        photo=photo.text(),
        options=root.key("options").object(),
        seed=root.key("seed").integer(0, MAX_SEED),
    )
    for name, entry in found.items():
        _check_similarity(lay, name, entry.key("photo_from_frag"))
    return lay


def _pose_json(pose: Pose) -> dict[str, float]:
    return {"angle": pose.degrees, "x": pose.xy[0], "y": pose.xy[1]}


def _parse_pose(node: Node) -> Pose:
    x, y = (node.key(key).number(-MAX_XY, MAX_XY) for key in ("x", "y"))
    return Pose.of_degrees(node.key("angle").number(-360.0, 360.0), (x, y))


def _parse_laid(node: Node, matrix: Floats, size: tuple[int, int]) -> Laid:
    at = node.key("table_from_frag")
    pose = _parse_pose(at)
    if not matrix[2] @ np.array([*pose.xy, 1.0]) > NEAREST or not np.linalg.det(tangent(matrix, pose.xy)[1]) > 0:
        raise at.refuse("a place on the table that the camera sees")
    box = node.key("box")
    top, left, height, width = (side.integer(0, MAX_PHOTO_SIDE) for side in box.entries(4))
    if top + height > size[0] or left + width > size[1]:
        raise box.refuse("[top, left, height, width] inside the photograph")
    return Laid(pose, _points(node.key("outline"), 3, MAX_CORNERS), (top, left, height, width))


def _points(node: Node, fewest: int, most: int) -> Floats:
    entries = node.entries()
    if not fewest <= len(entries) <= most:
        raise node.refuse(f"a list of {fewest} to {most} points")
    return np.array([[value.number(-MAX_XY, MAX_XY) for value in entry.entries(2)] for entry in entries])


def _pair(pair: Node, laid: dict[str, Laid]) -> tuple[str, str]:
    one, other = (entry.fragment_id() for entry in pair.entries(2))
    if one == other or one not in laid or other not in laid:
        raise pair.refuse("two different fragments of the photograph")
    return min(one, other), max(one, other)


def _parse_card(node: Node) -> Card:
    longer, shorter = (side.number(1e-3, 1e6) for side in node.key("size_mm").entries(2))
    return Card((longer, shorter), _points(node.key("corners"), 4, 4))


def _check_similarity(lay: Lay, name: str, node: Node) -> None:
    """The similarity must be the one that follows from the pose and the homography."""
    pose, scale = lay.photo_from_frag(name)
    said, said_scale = _parse_pose(node), node.key("scale").number(1e-9, 1e9)
    off = [(said.degrees - pose.degrees + 180) % 360 - 180, said_scale / scale - 1]
    off += [said.xy[0] - pose.xy[0], said.xy[1] - pose.xy[1]]
    if max(map(abs, off)) > AGREE:
        raise node.refuse("what table_from_frag, scale and photo_from_table make of it")
