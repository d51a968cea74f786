"""The project file: a zip of a puzzle folder with one more file, project.json, that keeps the state of the workbench.

Unpacked, it is a puzzle folder that every other command reads.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from jigsync.io.files import json_bytes, parse_json
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.io.schema import Node
from jigsync.io.solution_file import OLD_FORMAT, parse_solution, solution_json
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError
from jigsync.values.placement import Pitch, Placed, cell_pitch
from jigsync.values.puzzle import Puzzle
from jigsync.web.archive import readable
from jigsync.web.limits import Limits
from jigsync.web.models import ProjectModel, Shown, SolutionModel, Step, plain

PROJECT_FILE: Final = "project.json"
Project = ProjectModel
Checked = TypeVar("Checked", bound=BaseModel)


def shown(solution: Solution) -> Shown | None:
    """A solution in a grid, and the size of its cells; None for one that failed."""
    if not solution or solution.pitch is None:
        return None
    height, width = solution.pitch
    return Shown(solution=SolutionModel.model_validate(solution_json(solution)), pitch=[round(height), round(width)])


def solution_of(model: SolutionModel, puzzle: Puzzle, name: str = "solution") -> Solution:
    """The checked solution of a request; it must be of this puzzle. InputError otherwise.

    Cells and turns say where fragments are; poses are made from them, as a person moves fragments from cell to cell.
    """
    cells = parse_solution(Node(_cells_only(model), name))
    if set(cells.placement) != set(puzzle.ids):
        raise InputError(f"The {name} must name every fragment of the puzzle '{puzzle.name}', and no other.")
    pitch: Pitch = cell_pitch(puzzle, cells.placement)
    if model.pitch is not None:
        pitch = model.pitch[0], model.pitch[1]
    placement = {}
    for fragment in puzzle.ids:
        placed = cells.placement[fragment]
        if placed.cell is not None:
            component = model.fragments[fragment].component or 0
            placed = replace(Placed.at(*placed.cell, placed.turns, placed.confidence, pitch=pitch), component=component)
        placement[fragment] = placed
    gauge = cells.gauge if model.gauge.clear is None else replace(cells.gauge, clear=model.gauge.clear)
    return replace(cells, placement=placement, gauge=gauge, pitch=pitch if cells.grid else None, puzzle=puzzle)


def _cells_only(model: SolutionModel) -> dict[str, Any]:
    """The model as a solution.json of format 1, which leaves unknown probabilities out."""
    gauge = {"turns": model.gauge.turns or 0, "confidence": model.gauge.confidence}
    return {
        "format": OLD_FORMAT,
        "status": model.status,
        "reason": model.reason,
        "grid": model.grid,
        "gauge": gauge if model.gauge.probabilities is None else {**gauge, "probabilities": model.gauge.probabilities},
        "fragments": {
            name: {"row": p.row, "col": p.col, "turns": 0 if p.row is None else p.turns, "confidence": p.confidence}
            for name, p in model.fragments.items()
        },
        "solver": model.solver,
        "seconds": model.seconds,
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
        if found is not None and (made := shown(found)) is not None:
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
