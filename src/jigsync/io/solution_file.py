"""solution.json: a solver's answer.

    {"format": "jigsync-solution/2", "status": "ok|unsure|partial|failed", "reason": text,
     "layout": "grid|free", and for a grid "grid": [rows, cols], "pitch": [height, width] of a cell in pixels,
     "gauge": {"confidence", "angles": [degrees], "probabilities": [as many], "clear": bool, and for a grid "turns"},
     "fragments": {id: {"angle", "x", "y", "confidence", "component", and for a grid "row", "col", "turns"}},
     "confidence": the probability that four fifths of the fragments are right, or null,
     "pictures": [{"component", "whole": the probability that all its fragments are right and none lies elsewhere,
                   "gauge", and for a grid "grid", "pitch", "cells": {id: [row, col]}}],
     "solver": text, "seconds": number}

`placement_json` says what a place is. A fragment's confidence may be null; fragments of different components do not
claim to be placed towards each other. Angles of the gauge are further turns of the whole, the first one 0; `clear` says
whether the picture has a clear up, and may be left out: then the likeliest frame counts as clear.

"pictures" and "confidence" may be left out. Where there are several pictures, the layout is free and "gauge" is that of
the first one.

Format 1 is read, and written where a grid's poses are known in cells only: "grid" is null where nothing is placed, and
"probabilities" may be left out: the other three turns then share 1 - confidence.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any, cast, get_args

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.placement_json import (
    MAX_COMPONENT,
    MAX_XY,
    fragments,
    layout_json,
    parse_all,
    parse_cell,
    parse_layout,
    pose_json,
)
from jigsync.io.schema import Node, named
from jigsync.io.solution_schema import FORMAT, MAX_ANGLES, MAX_SECONDS, OLD_FORMAT
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.gauge import QUARTERS, Gauge
from jigsync.values.layout import FREE, Grid
from jigsync.values.picture import Picture
from jigsync.values.placement import Pitch, Placed, Placement, Status


def save_solution(path: StrPath, solution: Solution) -> None:
    """Writes solution.json, atomically."""
    write_json(path, solution_json(solution))


def solution_json(solution: Solution) -> dict[str, Any]:
    """The value of solution.json."""
    if solution.grid is not None and solution.pitch is None:
        return _old_json(solution)
    return {
        "format": FORMAT,
        "status": solution.status,
        "reason": solution.reason,
        **layout_json(solution.layout, solution.pitch),
        "gauge": _gauge_json(solution.gauge, solution.grid),
        "confidence": solution.confidence,
        "pictures": [_picture_json(picture) for picture in solution.pictures],
        "fragments": {
            name: {
                **pose_json(placed, solution.layout),
                "confidence": placed.confidence,
                "component": None if placed.pose is None else placed.component,
            }
            for name, placed in solution.placement.items()
        },
        "solver": solution.solver,
        "seconds": solution.seconds,
    }


def _gauge_json(gauge: Gauge, grid: Grid | None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "confidence": gauge.confidence,
        "angles": [round(math.degrees(angle), 9) for angle in gauge.angles],
        "probabilities": list(gauge.probabilities),
        "clear": gauge.clear,
    }
    return value if grid is None else {**value, "turns": gauge.turns}


def _picture_json(picture: Picture) -> dict[str, Any]:
    value = {
        "component": picture.component,
        "whole": picture.whole,
        "gauge": _gauge_json(picture.gauge, picture.grid),
        **layout_json(picture.layout, picture.pitch),
    }
    return value if picture.grid is None else {**value, "cells": {k: list(v) for k, v in picture.cells.items()}}


def _old_json(solution: Solution) -> dict[str, Any]:
    """Format 1, for a grid whose cells have no size."""
    assert solution.grid is not None
    return {
        "format": OLD_FORMAT,
        "status": solution.status,
        "reason": solution.reason,
        "grid": list(solution.grid.shape),
        "gauge": {
            "turns": solution.gauge.turns,
            "confidence": solution.gauge.confidence,
            "probabilities": list(solution.gauge.probabilities),
        },
        "fragments": {
            name: {"row": placed.row, "col": placed.col, "turns": placed.turns, "confidence": placed.confidence}
            for name, placed in solution.placement.items()
        },
        "solver": solution.solver,
        "seconds": solution.seconds,
    }


def load_solution(path: StrPath) -> Solution:
    """Reads solution.json; the solution has no puzzle and no energy."""
    return parse_solution(Node(read_json(path), os.fspath(path)))


def parse_solution(root: Node) -> Solution:
    """The solution of a parsed solution.json, of either format."""
    old = root.one_of_formats(FORMAT, OLD_FORMAT) == OLD_FORMAT
    status = root.key("status")
    if status.value not in get_args(Status):
        raise status.refuse("'ok', 'unsure', 'partial' or 'failed'")
    head = cast(Status, status.text()), root.key("reason").text()
    tail = root.key("solver").text(), root.key("seconds").number(0.0, MAX_SECONDS)
    if old:
        node = root.key("grid").optional()
        grid = None if node is None else node.grid()
        placement = {
            name: _judged(parse_cell(entry, grid), entry, components=False) for name, entry in fragments(root).items()
        }
        gauge = _old_gauge(root.key("gauge"))
        with named(root.file):
            return Solution(*head, FREE if grid is None else grid, placement, gauge, *tail)
    layout = parse_layout(root)
    found, pitch = parse_all(root, layout)
    placement = {name: _judged(placed, entry, components=True) for name, (placed, entry) in found.items()}
    gauge = _gauge(root.key("gauge"), isinstance(layout, Grid))
    pictures = _pictures(root, placement)
    with named(root.file):
        return Solution(
            *head,
            layout,
            placement,
            gauge,
            *tail,
            pitch=pitch,
            confidence=_share(root, "confidence"),
            whole=pictures[0].whole if len(pictures) == 1 else None,
            parts=pictures if len(pictures) > 1 else (),
        )


def _share(node: Node, key: str) -> float | None:
    """A probability that may be left out."""
    found = node.key(key).optional() if node.has(key) else None
    return None if found is None else found.number(0.0, 1.0)


def _pictures(root: Node, placement: Placement) -> tuple[Picture, ...]:
    if not root.has("pictures"):
        return ()
    out = []
    for node in root.key("pictures").entries():
        layout = parse_layout(node)
        number = node.key("component").integer(0, MAX_COMPONENT)
        gauge = _gauge(node.key("gauge"), isinstance(layout, Grid))
        if not isinstance(layout, Grid):
            out.append(Picture(number, layout, gauge, whole=_share(node, "whole")))
            continue
        cells = {}
        for name, entry in node.key("cells").items():
            if name not in placement or placement[name].pose is None:
                raise entry.refuse("the cell of a fragment that has a place")
            row, col = (part.integer(0, limit - 1) for part, limit in zip(entry.entries(2), layout.shape, strict=True))
            cells[name] = (row, col)
        pitch = node.key("pitch").optional()
        size = None if pitch is None else tuple(part.number(0.0, MAX_XY) for part in pitch.entries(2))
        out.append(Picture(number, layout, gauge, cast(Pitch | None, size), cells, _share(node, "whole")))
    return tuple(out)


def _judged(placed: Placed, node: Node, *, components: bool) -> Placed:
    """A place with what the file says beside it; format 1 knows no components."""
    sure = node.key("confidence").optional()
    number = node.key("component").optional() if components and node.has("component") else None
    confidence = None if sure is None else sure.number(0.0, 1.0)
    component = 0 if number is None else number.integer(0, MAX_COMPONENT)
    return Placed(placed.pose, placed.cell, confidence, component)


def _gauge(node: Node, grid: bool) -> Gauge:
    confidence, listed, turned = (node.key(key) for key in ("confidence", "probabilities", "angles"))
    p = tuple(entry.number(0.0, 1.0) for entry in listed.entries())
    angles = tuple(math.radians(entry.number(-360.0, 360.0)) for entry in turned.entries())
    if not 1 <= len(p) <= MAX_ANGLES or len(p) != len(angles):
        raise listed.refuse(f"as many probabilities as there are angles, 1 to {MAX_ANGLES}")
    if not math.isclose(sum(p), 1.0, abs_tol=1e-6) or not math.isclose(p[0], confidence.number(0.0, 1.0), abs_tol=1e-6):
        raise listed.refuse("probabilities that sum to 1, the first one equal to the confidence")
    said = node.key("turns").optional() if grid and node.has("turns") else None
    turns = None if said is None else said.integer(0, z4.ORDER - 1)
    quarters = len(angles) == z4.ORDER and all(
        math.isclose(a, b, abs_tol=1e-9) for a, b in zip(angles, QUARTERS, strict=True)
    )
    if grid and not quarters:
        raise turned.refuse("the four quarter turns 0, 90, -180, -90, as the layout is a grid")
    gauge = Gauge(QUARTERS if quarters else angles, p, turns)
    return replace(gauge, clear=node.key("clear").boolean()) if node.has("clear") else _told(gauge)


def _old_gauge(node: Node) -> Gauge:
    turns, confidence = node.key("turns").integer(0, z4.ORDER - 1), node.key("confidence").number(0.0, 1.0)
    if not node.has("probabilities"):
        rest = (1.0 - confidence) / 3.0
        return _told(Gauge.of_turns(turns, (confidence, rest, rest, rest)))
    listed = node.key("probabilities")
    p = [entry.number(0.0, 1.0) for entry in listed.entries(z4.ORDER)]
    if not math.isclose(sum(p), 1.0, abs_tol=1e-6) or not math.isclose(p[0], confidence, abs_tol=1e-6):
        raise listed.refuse("four probabilities that sum to 1, the first one equal to the confidence")
    return _told(Gauge.of_turns(turns, p))


def _told(gauge: Gauge) -> Gauge:
    """A gauge of a file that does not say whether it is clear."""
    return replace(gauge, clear=gauge.determined)
