"""The project file: a zip of a puzzle folder with one more file, project.json, that keeps the state of the workbench.

Unpacked, it is a puzzle folder that every other command reads.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from jigsync.io.files import json_bytes, parse_json
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError
from jigsync.values.puzzle import Puzzle
from jigsync.web.archive import readable
from jigsync.web.models import ProjectModel, SolutionModel, Step, plain

PROJECT_FILE: Final = "project.json"
Project = ProjectModel


def solution_of(model: SolutionModel, puzzle: Puzzle, name: str = "solution") -> Solution:
    """The checked solution of a request; it must be of this puzzle. InputError otherwise."""
    solution = parse_solution(Node(plain_solution(model), name))
    if set(solution.placement) != set(puzzle.ids):
        raise InputError(f"The {name} must name every fragment of the puzzle '{puzzle.name}', and no other.")
    placement = {name: solution.placement[name] for name in puzzle.ids}
    return replace(solution, placement=placement, puzzle=puzzle)


def plain_solution(model: SolutionModel) -> dict[str, Any]:
    """The model in the form of solution.json, which leaves unknown probabilities out."""
    value = plain(model)
    if value["gauge"]["probabilities"] is None:
        del value["gauge"]["probabilities"]
    return value


def check_step(step: Step, puzzle: Puzzle) -> Solution | None:
    """The step's solution; InputError when anything in it is not of this puzzle."""
    for name in (*step.pinned, *step.excluded):
        if name not in puzzle.ids:
            raise InputError(f"The fragment '{name}' is not in the puzzle '{puzzle.name}'.")
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


def read_project(data: bytes, shown: str, puzzle: Puzzle) -> ProjectModel:
    """The checked project.json of a puzzle."""
    try:
        project = ProjectModel.model_validate(parse_json(data, shown))
    except ValidationError as error:
        first = error.errors()[0]
        place = readable(".".join(str(part) for part in first["loc"]))
        raise FormatError(f"The project file '{shown}' is not usable: '{place}': {first['msg']}.") from None
    if project.at >= len(project.steps):
        raise FormatError(f"The project file '{shown}' shows step {project.at} of {len(project.steps)}.")
    for step in project.steps:
        check_step(step, puzzle)
    return project
