"""solution.json: a solver's answer.

    {"format": "jigsync-solution/2", "status": "ok|partial|failed", "reason": text,
     "layout": "grid|free", and for a grid "grid": [rows, cols], "pitch": [height, width] of a cell in pixels,
     "gauge": {"confidence", "angles": [degrees], "probabilities": [as many], "clear": bool, and for a grid "turns"},
     "fragments": {id: {"angle", "x", "y", "confidence", "component", and for a grid "row", "col", "turns"}},
     "solver": text, "seconds": number}

`placement_json` says what a place is. A fragment's confidence may be null; fragments of different components do not
claim to be placed towards each other. Angles of the gauge are further turns of the whole, the first one 0; `clear` says
whether the picture has a clear up, and may be left out: then the likeliest frame counts as clear.

Format 1 is read, and written where a grid's poses are known in cells only: "grid" is null where nothing is placed, and
"probabilities" may be left out: the other three turns then share 1 - confidence.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any, Final, cast, get_args

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.placement_json import (
    MAX_COMPONENT,
    fragments,
    layout_json,
    parse_all,
    parse_cell,
    parse_layout,
    parse_pitch,
    pose_json,
)
from jigsync.io.schema import Node, named
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.gauge import QUARTERS, Gauge
from jigsync.values.layout import FREE, Grid
from jigsync.values.placement import Placed, Status

FORMAT: Final = "jigsync-solution/2"
OLD_FORMAT: Final = "jigsync-solution/1"
MAX_SECONDS: Final = 1e12
MAX_ANGLES: Final = 3600
"""Most angles of a gauge: a tenth of a degree apart."""


def save_solution(path: StrPath, solution: Solution) -> None:
    """Writes solution.json, atomically."""
    write_json(path, solution_json(solution))


def solution_json(solution: Solution) -> dict[str, Any]:
    """The value of solution.json."""
    if solution.grid is not None and solution.pitch is None:
        return _old_json(solution)
    gauge: dict[str, Any] = {
        "confidence": solution.gauge.confidence,
        "angles": [round(math.degrees(angle), 9) for angle in solution.gauge.angles],
        "probabilities": list(solution.gauge.probabilities),
        "clear": solution.gauge.clear,
    }
    if solution.grid is not None:
        gauge["turns"] = solution.gauge.turns
    return {
        "format": FORMAT,
        "status": solution.status,
        "reason": solution.reason,
        **layout_json(solution.layout, solution.pitch),
        "gauge": gauge,
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
        raise status.refuse("'ok', 'partial' or 'failed'")
    head = cast(Status, status.text()), root.key("reason").text()
    tail = root.key("solver").text(), root.key("seconds").number(0.0, MAX_SECONDS)
    if old:
        node = root.key("grid").optional()
        grid = None if node is None else node.grid()
        placement = {name: _sure(parse_cell(entry, grid), entry) for name, entry in fragments(root).items()}
        gauge = _old_gauge(root.key("gauge"))
        with named(root.file):
            return Solution(*head, FREE if grid is None else grid, placement, gauge, *tail)
    layout = parse_layout(root)
    placement = {
        name: _component(_sure(placed, entry), entry) for name, (placed, entry) in parse_all(root, layout).items()
    }
    gauge = _gauge(root.key("gauge"), isinstance(layout, Grid))
    with named(root.file):
        return Solution(*head, layout, placement, gauge, *tail, pitch=parse_pitch(root, layout, placement))


def _sure(placed: Placed, node: Node) -> Placed:
    sure = node.key("confidence").optional()
    return placed if sure is None else replace(placed, confidence=sure.number(0.0, 1.0))


def _component(placed: Placed, node: Node) -> Placed:
    number = node.key("component").optional() if node.has("component") else None
    return placed if number is None else replace(placed, component=number.integer(0, MAX_COMPONENT))


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
