"""The project file: a zip of a puzzle folder with one more file, project.json, that keeps the state of the workbench.

Unpacked, it is a puzzle folder that every other command reads.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from jigsync.io.files import json_bytes, parse_json
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.io.schema import Node
from jigsync.io.solution_file import FORMAT, OLD_FORMAT, parse_solution, solution_json
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError
from jigsync.values.gauge import QUARTERS, Gauge
from jigsync.values.placement import Placed, cell_pitch
from jigsync.values.pose import RIGHT
from jigsync.values.puzzle import Puzzle
from jigsync.web.archive import readable
from jigsync.web.limits import Limits
from jigsync.web.models import ProjectModel, Shown, SolutionModel, Step, plain

PROJECT_FILE: Final = "project.json"
Project = ProjectModel
NEAR: Final = 0.5
"""Cells that a fragment may be off the centre of its own."""
Checked = TypeVar("Checked", bound=BaseModel)


def shown(solution: Solution, puzzle: Puzzle) -> Shown | None:
    """A solution, and the size of its cells or of a usual fragment; None for one that failed."""
    if not solution:
        return None
    height, width = solution.pitch or cell_pitch(puzzle, {})
    return Shown(solution=SolutionModel.model_validate(solution_json(solution)), pitch=[round(height), round(width)])


def solution_of(model: SolutionModel, puzzle: Puzzle, name: str = "solution") -> Solution:
    """The checked solution of a request; it must be of this puzzle. InputError otherwise.

    In a grid a person moves fragments from cell to cell: where the pose is not of the cell, the cell counts.
    """
    if set(model.fragments) != set(puzzle.ids):
        raise InputError(f"The {name} must name every fragment of the puzzle '{puzzle.name}', and no other.")
    if model.format == OLD_FORMAT:
        cells = parse_solution(Node(_cells_only(model), name))
        value: dict[str, Any] = plain(model) | {"format": FORMAT, "gauge": _gauge_json(cells.gauge)}
        value |= {"layout": "free"} if model.grid is None else {}
    else:
        value = plain(model)
    if model.layout == "grid" and model.grid is not None:
        if not value["gauge"]["angles"]:
            value["gauge"]["angles"] = [math.degrees(angle) for angle in QUARTERS]
        _seat(value, puzzle)
    found = parse_solution(Node(value, name))
    return replace(found, placement={name: found.placement[name] for name in puzzle.ids}, puzzle=puzzle)


def _seat(value: dict[str, Any], puzzle: Puzzle) -> None:
    """Puts fragments that are said to be in a cell, and are not, onto its centre."""
    inside = {name: f for name, f in value["fragments"].items() if f["row"] is not None and f["col"] is not None}
    if value["pitch"] is None:
        cells = {name: Placed.at(f["row"], f["col"], f["turns"] or 0) for name, f in inside.items()}
        value["pitch"] = list(cell_pitch(puzzle, cells))
    height, width = value["pitch"]
    for f in inside.values():
        there = f["x"] is not None and f["y"] is not None and f["angle"] is not None
        near = there and max(abs(f["x"] / width - f["col"] - 0.5), abs(f["y"] / height - f["row"] - 0.5)) <= NEAR
        upright = there and (f["turns"] is None or (f["angle"] - RIGHT * f["turns"]) % 360 == 0)
        if not (near and upright) and f["turns"] is not None:
            pose = Placed.at(f["row"], f["col"], f["turns"], pitch=(height, width)).pose
            assert pose is not None
            f |= {"angle": pose.degrees, "x": pose.xy[0], "y": pose.xy[1]}


def _gauge_json(gauge: Gauge) -> dict[str, Any]:
    angles = [math.degrees(angle) for angle in gauge.angles]
    return {"turns": gauge.turns, "confidence": gauge.confidence, "angles": angles} | {
        "probabilities": list(gauge.probabilities)
    }


def _cells_only(model: SolutionModel) -> dict[str, Any]:
    """A solution of format 1 without what it leaves out."""
    gauge = {"turns": model.gauge.turns or 0, "confidence": model.gauge.confidence}
    return {
        **plain(model),
        "gauge": {**gauge, "probabilities": model.gauge.probabilities} if model.gauge.probabilities else gauge,
        "fragments": {name: {**plain(p), "turns": p.turns or 0} for name, p in model.fragments.items()},
    }


def check_step(step: Step, puzzle: Puzzle) -> Solution | None:
    """The step's solution; InputError when anything in it is not of this puzzle."""
    if strangers := {*step.pinned, *step.excluded} - set(puzzle.ids):
        raise InputError(f"The fragment '{min(strangers)}' is not in the puzzle '{puzzle.name}'.")
    return None if step.solution is None else solution_of(step.solution, puzzle)


def project_bytes(puzzle: Puzzle, project: ProjectModel) -> bytes:
    """The project file."""
    return zip_bytes({**puzzle_members(puzzle), PROJECT_FILE: json_bytes(plain(project))})


def zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """A zip of a puzzle folder's files and whatever goes with them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:  # PNG is packed already
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # without a date: the same state gives the same bytes
    return buffer.getvalue()


def read_project(data: bytes, shown_name: str, puzzle: Puzzle, limits: Limits) -> ProjectModel:
    """The checked project.json of a puzzle; its solutions are made format 2, so that nobody has to look at pixels for
    the size of a cell."""
    project = checked(ProjectModel, parse_json(data, shown_name, limits.project_bytes), f"project file '{shown_name}'")
    if project.at >= len(project.steps):
        raise FormatError(f"The project file '{shown_name}' shows step {project.at} of {len(project.steps)}.")
    for step in project.steps:
        found = check_step(step, puzzle)
        if found is not None and (made := shown(found, puzzle)) is not None:
            step.solution = made.solution
    return project


def checked(model: type[Checked], value: Any, what: str) -> Checked:
    """A value of a file as a model; FormatError that says what the file is, and what is wrong first."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = readable(".".join(str(part) for part in first["loc"]))
        raise FormatError(f"The {what} is not usable: '{place}': {first['msg']}.") from None
