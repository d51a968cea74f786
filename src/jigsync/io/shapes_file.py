"""shapes.json: the outlines of a puzzle's fragments without their pictures, for whoever scores placements later.

{"format": "jigsync-shapes/1", "name": text,
 "fragments": {id: {"size": [height, width], "alpha": base64 of zlib of the alpha bytes, row by row}},
 "sha256": checksum}
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any, Final

import numpy as np

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.schema import Node
from jigsync.io.seal import SEAL, check_seal, sealed
from jigsync.values.puzzle import Fragments, Pixels, Puzzle

FORMAT: Final = "jigsync-shapes/1"
MAX_SIDE: Final = 1 << 16
MAX_PIXELS: Final = 1 << 28
"""Of one fragment."""


def save_shapes(path: StrPath, puzzle: Puzzle) -> None:
    """Writes shapes.json, atomically."""
    write_json(path, sealed(shapes_json(puzzle)))


def shapes_json(puzzle: Puzzle) -> dict[str, Any]:
    """The value of shapes.json, without its checksum."""
    shapes = {}
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        packed = zlib.compress(np.ascontiguousarray(pixels[..., 3]).tobytes(), 6)
        shapes[name] = {"size": list(pixels.shape[:2]), "alpha": base64.b64encode(packed).decode("ascii")}
    return {"format": FORMAT, "name": puzzle.name, "fragments": shapes}


def load_shapes(path: StrPath) -> Puzzle:
    """The puzzle with black fragments: their alpha is what it was."""
    root = Node(read_json(path), str(path))
    root.format(FORMAT)
    if SEAL in root.object():
        check_seal(root.object(), root.file)
    found = {name: _alpha(node) for name, node in root.key("fragments").items()}
    return Puzzle(Fragments(tuple(found), tuple(found.values())), name=root.key("name").text())


def _alpha(node: Node) -> Pixels:
    height, width = (entry.integer(1, MAX_SIDE) for entry in node.key("size").entries(2))
    packed = node.key("alpha")
    if height * width > MAX_PIXELS:
        raise node.key("size").refuse(f"at most {MAX_PIXELS} pixels")
    try:
        opened = zlib.decompressobj()
        alpha = opened.decompress(base64.b64decode(packed.text(), validate=True), height * width + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise packed.refuse("the alpha bytes that were packed there") from None
    if len(alpha) != height * width:
        raise packed.refuse(f"{height * width} alpha bytes")
    pixels = np.zeros((height, width, 4), dtype=np.uint8)
    pixels[..., 3] = np.frombuffer(alpha, dtype=np.uint8).reshape(height, width)
    return pixels
