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
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError
from jigsync.values.placement import Placed, cell_pitch
from jigsync.values.puzzle import Puzzle
from jigsync.web.archive import readable
from jigsync.web.limits import Limits
from jigsync.web.models import ProjectModel, Shown, Step, plain

PROJECT_FILE: Final = "project.json"
Project = ProjectModel
Checked = TypeVar("Checked", bound=BaseModel)


def shown(solution: Solution, puzzle: Puzzle) -> Shown | None:
    """A solution, and the size of its cells or of a usual fragment; None for one that failed."""
    if not solution:
        return None
    height, width = solution.pitch or cell_pitch(puzzle, {})
    return Shown(solution=solution, pitch=[round(height), round(width)])


def solution_of(found: Solution, puzzle: Puzzle) -> Solution:
    """The solution of a request, which must be of this puzzle; where it knows cells only, in pixels. InputError
    otherwise."""
    if set(found.placement) != set(puzzle.ids):
        raise InputError(f"The solution must name every fragment of the puzzle '{puzzle.name}', and no other.")
    placement, pitch = {name: found.placement[name] for name in puzzle.ids}, found.pitch
    if found.grid is not None and pitch is None:
        pitch = cell_pitch(puzzle, placement)
        for name, placed in placement.items():
            if placed.cell is not None:
                placement[name] = Placed.at(*placed.cell, placed.turns, placed.confidence, pitch=pitch)
    return replace(found, placement=placement, pitch=pitch, puzzle=puzzle)


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
        step.solution = check_step(step, puzzle)
    return project


def checked(model: type[Checked], value: Any, what: str) -> Checked:
    """A value of a file as a model; FormatError that says what the file is, and what is wrong first."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = readable(".".join(str(part) for part in first["loc"]))
        raise FormatError(f"The {what} is not usable: '{place}': {first['msg']}.") from None
    except FormatError as error:
        raise FormatError(f"The {what} is not usable: {error}") from None
