"""truth.json: what a solver must never open. Apart from `puzzle_folder`, so that solvers cannot reach it.

    {"format": "jigsync-truth/2", "layout": "grid|free", and for a grid "grid": [rows, cols], "pitch": [height, width],
     "fragments": {id: {"angle", "x", "y", and for a grid "row", "col", "turns"}},
     and, where the file is ours: "options": {...}, "seed": int, "source_sha256": hex, "flags": {...},
     "contacts": [[id, id], ...] where it is known who touched whom}

`placement_json` says what a place is; the picture that the poses make is upright. Format 1 is read: its fragments have
"row", "col" and "turns" only, and np.rot90(stored, turns) is upright.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.placement_json import (
    fragments,
    layout_json,
    parse_all,
    parse_cell,
    parse_layout,
    pose_json,
)
from jigsync.io.schema import Node, named
from jigsync.values.layout import Grid, Layout
from jigsync.values.placement import Pitch, Placed
from jigsync.values.truth import Truth

FORMAT: Final = "jigsync-truth/2"
OLD_FORMAT: Final = "jigsync-truth/1"
TRUTH_FILE: Final = "truth.json"
MAX_SEED: Final = 2**64 - 1


def save_truth(path: StrPath, truth: Truth) -> None:
    """Writes truth.json, atomically."""
    write_json(path, truth_json(truth))


def truth_json(truth: Truth) -> dict[str, Any]:
    """The value of truth.json; a grid whose poses are known in cells only is written as it came, in format 1."""
    if isinstance(truth.layout, Grid) and truth.pitch is None:
        head: dict[str, Any] = {"format": OLD_FORMAT, "grid": list(truth.layout.shape)}
        entries = {name: {"row": p.row, "col": p.col, "turns": p.turns} for name, p in truth.placement.items()}
    else:
        head = {"format": FORMAT, **layout_json(truth.layout, truth.pitch)}
        entries = {name: pose_json(placed, truth.layout) for name, placed in truth.placement.items()}
    return {
        **head,
        "fragments": entries,
        "options": dict(truth.options),
        "seed": truth.seed,
        "source_sha256": truth.source_sha256,
        "flags": dict(truth.flags),
        **({} if truth.contacts is None else {"contacts": [list(pair) for pair in sorted(truth.contacts)]}),
    }


def load_truth(path: StrPath) -> Truth:
    """Reads truth.json."""
    return parse_truth(Node(read_json(path), os.fspath(path)))


def parse_truth(root: Node) -> Truth:
    """The truth of a parsed truth.json, of either format."""
    layout: Layout
    pitch: Pitch | None = None
    old = root.one_of_formats(FORMAT, OLD_FORMAT) == OLD_FORMAT
    if old:
        grid = layout = root.key("grid").grid()
        placement = {name: parse_cell(node, grid, required=True) for name, node in fragments(root).items()}
    else:
        layout = parse_layout(root)
        found, pitch = parse_all(root, layout)
        placement = {name: placed for name, (placed, _) in found.items()}
    sha = root.key("source_sha256") if old or root.has("source_sha256") else Node("", root.file)
    if not re.fullmatch(r"([0-9a-f]{64})?", sha.text()):
        raise sha.refuse("a sha256 in 64 hex digits, or empty")
    options, flags = (root.key(key).object() if root.has(key) else {} for key in ("options", "flags"))
    seed = root.key("seed").integer(0, MAX_SEED) if root.has("seed") else 0
    contacts = _contacts(root, placement)
    with named(root.file):
        return Truth(layout, placement, options, seed, sha.text(), flags, pitch, contacts)


def _contacts(root: Node, placement: dict[str, Placed]) -> frozenset[tuple[str, str]] | None:
    if not root.has("contacts"):
        return None
    found = set()
    for pair in root.key("contacts").entries():
        one, other = (entry.fragment_id() for entry in pair.entries(2))
        if one == other or one not in placement or other not in placement:
            raise pair.refuse("two different fragments of the puzzle")
        found.add((min(one, other), max(one, other)))
    return frozenset(found)
