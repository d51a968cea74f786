"""solution.json: a solver's answer.

    {"format": "jigsync-solution/1", "status": "ok|partial|failed", "reason": text, "grid": [rows, cols] or null,
     "gauge": {"turns", "confidence", "probabilities": [p0, p1, p2, p3]},
     "fragments": {id: {"row", "col", "turns", "confidence"}}, "solver": text, "seconds": number}

An unplaced fragment has null row and col; a fragment's confidence may be null. "probabilities" may be left out by
other tools: the other three turns then share 1 - confidence.
"""

from __future__ import annotations

import math
import os
from typing import Any, Final, cast

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.schema import Node, named
from jigsync.values import z4
from jigsync.values.placement import Gauge, Placed, Solution, Status
from jigsync.values.puzzle import Grid

FORMAT: Final = "jigsync-solution/1"
STATUSES: Final = ("ok", "partial", "failed")
MAX_SECONDS: Final = 1e12


def save_solution(path: StrPath, solution: Solution) -> None:
    """Writes solution.json, atomically."""
    write_json(path, solution_json(solution))


def solution_json(solution: Solution) -> dict[str, Any]:
    """The value of solution.json."""
    return {
        "format": FORMAT,
        "status": solution.status,
        "reason": solution.reason,
        "grid": None if solution.grid is None else list(solution.grid.shape),
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
    """The solution of a parsed solution.json."""
    root.format(FORMAT)
    status = root.key("status")
    if status.value not in STATUSES:
        raise status.refuse("'ok', 'partial' or 'failed'")
    grid_node = root.key("grid").optional()
    grid = None if grid_node is None else grid_node.grid()
    placement = {}
    for name, node in root.key("fragments").items():
        Node(name, root.file, "fragments").fragment_id()
        placement[name] = _placed(node, grid)
    with named(root.file):
        return Solution(
            cast(Status, status.text()),
            root.key("reason").text(),
            grid,
            placement,
            _gauge(root.key("gauge")),
            root.key("solver").text(),
            root.key("seconds").number(0.0, MAX_SECONDS),
        )


def _placed(node: Node, grid: Grid | None) -> Placed:
    row, col = node.key("row").optional(), node.key("col").optional()
    turns = node.key("turns").integer(0, z4.ORDER - 1)
    sure = node.key("confidence").optional()
    confidence = None if sure is None else sure.number(0.0, 1.0)
    if row is None and col is None:
        return Placed(None, None, turns, confidence)
    if row is None or col is None:
        raise node.refuse("a fragment whose row and col are both numbers or both null")
    if grid is None:
        raise node.refuse("unplaced (row and col null), as the solution names no grid")
    return Placed(row.integer(0, grid.rows - 1), col.integer(0, grid.cols - 1), turns, confidence)


def _gauge(node: Node) -> Gauge:
    turns, confidence = node.key("turns").integer(0, z4.ORDER - 1), node.key("confidence").number(0.0, 1.0)
    if not node.has("probabilities"):
        rest = (1.0 - confidence) / 3.0
        return Gauge(turns, (confidence, rest, rest, rest))
    listed = node.key("probabilities")
    p0, p1, p2, p3 = (entry.number(0.0, 1.0) for entry in listed.entries(z4.ORDER))
    if not math.isclose(p0 + p1 + p2 + p3, 1.0, abs_tol=1e-6) or not math.isclose(p0, confidence, abs_tol=1e-6):
        raise listed.refuse("four probabilities that sum to 1, the first one equal to the confidence")
    return Gauge(turns, (p0, p1, p2, p3))
