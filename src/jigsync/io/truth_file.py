"""truth.json: what a solver must never open. Apart from `puzzle_folder`, so that solvers cannot reach it.

    {"format": "jigsync-truth/1", "grid": [rows, cols], "fragments": {id: {"row", "col", "turns"}},
     "options": {...}, "seed": int, "source_sha256": hex, "flags": {...}}

Convention: turns restore, np.rot90(stored, turns) is upright.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.schema import Node, named
from jigsync.values import z4
from jigsync.values.placement import Placed
from jigsync.values.truth import Truth

FORMAT: Final = "jigsync-truth/1"
TRUTH_FILE: Final = "truth.json"
MAX_SEED: Final = 2**64 - 1


def save_truth(path: StrPath, truth: Truth) -> None:
    """Writes truth.json, atomically."""
    write_json(path, truth_json(truth))


def truth_json(truth: Truth) -> dict[str, Any]:
    """The value of truth.json."""
    return {
        "format": FORMAT,
        "grid": list(truth.grid.shape),
        "fragments": {
            name: {"row": placed.row, "col": placed.col, "turns": placed.turns}
            for name, placed in truth.placement.items()
        },
        "options": dict(truth.options),
        "seed": truth.seed,
        "source_sha256": truth.source_sha256,
        "flags": dict(truth.flags),
    }


def load_truth(path: StrPath) -> Truth:
    """Reads truth.json."""
    return parse_truth(Node(read_json(path), os.fspath(path)))


def parse_truth(root: Node) -> Truth:
    """The truth of a parsed truth.json."""
    root.format(FORMAT)
    grid = root.key("grid").grid()
    placement = {}
    for name, node in root.key("fragments").items():
        Node(name, root.file, "fragments").fragment_id()
        placement[name] = Placed(
            node.key("row").integer(0, grid.rows - 1),
            node.key("col").integer(0, grid.cols - 1),
            node.key("turns").integer(0, z4.ORDER - 1),
        )
    sha = root.key("source_sha256")
    if not re.fullmatch(r"([0-9a-f]{64})?", sha.text()):
        raise sha.refuse("a sha256 in 64 hex digits, or empty")
    options, flags = root.key("options").object(), root.key("flags").object()
    with named(root.file):
        return Truth(grid, placement, options, root.key("seed").integer(0, MAX_SEED), sha.text(), flags)
